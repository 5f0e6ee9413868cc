"""Benchmarks that are ended from outside, at their imports and at work; and what they started, left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hudsim.bench.latency.payload import Payload
from tests.cli.command import LIMIT_S, alive, children, hudsim, started

SYSTEMS = Path(__file__).parents[2] / "bench" / "latency" / "systems"
SIGNALLED = "import os, signal\nos.kill(os.getpid(), signal.{})\nraise SystemExit('the imports went on')\n"

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("bench", "imported"), [("harness", "mujoco"), ("sandbox", "asyncssh")])
def test_a_signal_during_the_imports_is_one_line(
    tmp_path: Path, bench: str, imported: str, number: signal.Signals
) -> None:
    (tmp_path / f"{imported}.py").write_text(SIGNALLED.format(number.name))
    done = hudsim("bench", bench, "--quick", environment={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def descendants(pid: int) -> list[int]:
    """Those of ``pid``."""
    found = [pid]
    for one in found:
        found += children(one)
    return found[1:]


@needs_proc
@pytest.mark.parametrize("words", [("latency", "--payload", "state"), ("scale", "--world", "state")])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_signal_at_work_ends_it_and_what_it_started_which_has_nothing_to_say(
    words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    with started("bench", *words) as process:
        deadline_s = time.monotonic() + LIMIT_S
        while not (below := descendants(process.pid)) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert below
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)  # until the last that holds its stderr has ended
    assert process.returncode == code
    said = [line for line in errors.splitlines() if not line.startswith("state")]  # what it is at
    assert said == (["interrupted"] if code == 130 else [])
    while any(map(alive, below)) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not any(map(alive, below))


def unheard(command: list[str], said: str) -> subprocess.CompletedProcess[str]:
    """Run ``command``, which is told ``said``, and whose answers nobody hears."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        return subprocess.run(
            command, input=said, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S
        )
    finally:
        os.close(theirs)


@pytest.mark.parametrize("system", ["tcp_floor", "websockets_floor", "hudsim_shm"])
def test_a_system_that_nobody_listens_to_ends_in_silence(tmp_path: Path, system: str) -> None:
    opening = json.dumps({"payload": Payload().write(tmp_path / "arrays.npz", "camera")})
    turn = json.dumps({"trips": 2, "budget_s": 1.0})
    command = [sys.executable, str(SYSTEMS / "play.py"), str(SYSTEMS / f"{system}.py")]
    for said in ("", f"{opening}\n{turn}\n"):
        done = unheard(command, said)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_crew_that_nobody_listens_to_ends_in_silence() -> None:
    order = json.dumps({"world": "state", "slots": 1, "mode": "lockstep"})
    for said in ("", f"{order}\n"):
        done = unheard([sys.executable, "-m", "hudsim.bench.scale.crew"], said)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_bare_server_that_nobody_listens_to_ends_in_silence() -> None:
    done = unheard([sys.executable, "-m", "hudsim.bench.harness", "--floor"], "")
    assert (done.returncode, done.stderr) == (0, "")
