"""The ``hudsim`` command as a user has it: a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HUDSIM = [sys.executable, "-m", "hudsim.cli"]
LIMIT_S = 50

_WAITING = [
    sys.executable,
    "-c",
    "import sys, time; import hudsim.cli.main; print(time.monotonic() - float(sys.argv[1]) - time.process_time())",
]
"""Prints for how many seconds, of those since the given moment, it did not run."""


def hudsim(
    *words: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``hudsim`` with ``words`` to its end; ``environment`` is added to what there is."""
    return subprocess.run(
        [*HUDSIM, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        timeout=LIMIT_S,
    )


def document(*words: str, cwd: Path | None = None) -> dict[str, Any]:
    """What ``hudsim WORDS --json`` printed, which ended with 0."""
    done = hudsim(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


@contextmanager
def started(*words: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """``hudsim`` with ``words`` while it runs; killed at the end if it still does."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*HUDSIM, *words], text=True, cwd=cwd, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """``hudsim serve`` with ``words``, and what its first line said."""
    with started("serve", *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)


def told(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, float, str]:
    """Send a signal; the exit code, how many seconds that took, what was on stderr.

    Off the seconds is what another interpreter, started at the same moment, has to wait for a processor: nothing worth
    mention on a quiet machine.
    """
    began = time.monotonic()
    process.send_signal(number)
    with subprocess.Popen([*_WAITING, str(began)], text=True, stdout=subprocess.PIPE) as beside:
        _, errors = process.communicate(timeout=LIMIT_S)
        seconds = time.monotonic() - began
        waited, _ = beside.communicate(timeout=LIMIT_S)
    return process.returncode, seconds - float(waited), errors


def children(pid: int) -> list[int]:
    """The processes whose parent is ``pid``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # gone meanwhile
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
