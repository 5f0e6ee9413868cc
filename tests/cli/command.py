"""The ``hudsim`` command as a user has it: a process of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
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


def inside(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process, which saves its start; not with ``--json``, which takes the process's stdout."""
    from hudsim.cli.main import app

    out, err, path = StringIO(), StringIO(), [*sys.path]
    try:
        with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
            app([*words], prog_name="hudsim")
    except SystemExit as ended:
        return subprocess.CompletedProcess(words, int(ended.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.path[:] = path
    raise AssertionError("a command ends with its code")


def document(*words: str, cwd: Path | None = None) -> dict[str, Any]:
    """What ``hudsim WORDS --json`` printed, which ended with 0."""
    done = hudsim(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def on_a_terminal(*words: str, cwd: Path, columns: int, more: Mapping[str, str] | None = None) -> str:
    """What ``hudsim`` with ``words`` writes to a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color", **(more or {})}
    with subprocess.Popen([*HUDSIM, *words], stdout=theirs, stderr=theirs, stdin=theirs, cwd=cwd, env=env) as process:
        os.close(theirs)
        said = b""
        try:
            while data := os.read(ours, 1 << 16):
                said += data
        except OSError:
            pass  # EIO: the other end is closed
        os.close(ours)
        assert process.wait(LIMIT_S) == 0
    return said.decode()


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
