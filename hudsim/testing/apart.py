"""The checks of a world in a process of its own, which may crash, exit or hang without harm to the caller's."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict
from typing import Any

from hudsim.errors import from_wire
from hudsim.robot.spec import WorldSpec
from hudsim.testing.finding import Finding

__all__ = ["check_apart"]

_LOOK_S = 0.2  # a child's own children may hold the pipe open when it is gone


def check_apart(
    spec: WorldSpec, *, recognise: str | None = None, watchdog_s: float = 60.0
) -> Generator[Finding, None, None]:
    """What :func:`~hudsim.testing.checks.check_bridge` finds, as it is found; the death of the world is a finding too.

    What the world prints goes to stderr. Closing the iterator ends the process.

    recognise
        ``module:attr`` of a :data:`~hudsim.testing.subject.Recognise`. None: frames are not looked at for a test card.
    watchdog_s
        Seconds without a finding after which the world has hung, and its process is killed.

    Raises :class:`~hudsim.errors.UsageError` for a spec that names nothing.
    """
    read_fd, write_fd = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hudsim.testing"],
            stdin=subprocess.PIPE,
            stdout=2,
            pass_fds=(write_fd,),
            start_new_session=True,  # Ctrl-C is the parent's, which ends all that the world has started
        )
    finally:
        os.close(write_fd)
    assert process.stdin is not None
    try:
        order = {"spec": asdict(spec), "recognise": recognise, "findings_fd": write_fd}
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        yield from _findings(process, read_fd, watchdog_s)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(read_fd)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _findings(process: subprocess.Popen[bytes], fd: int, watchdog_s: float) -> Iterator[Finding]:
    checking = "world"
    try:
        for message in _messages(process, fd, watchdog_s):
            if (refused := message.get("refused")) is not None:
                raise from_wire(refused["name"], refused["message"], refused["data"])
            if "done" in message:
                return
            checking = message.get("check", checking)
            if "finding" in message:
                yield Finding(**message["finding"])
        code = process.wait(watchdog_s)
    except (TimeoutError, subprocess.TimeoutExpired):
        yield Finding(checking, f"no answer within {watchdog_s:g} s, and the world's process was killed")
        return
    how = f"died by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    yield Finding(checking, f"the world's process {how}")


def _messages(process: subprocess.Popen[bytes], fd: int, watchdog_s: float) -> Iterator[dict[str, Any]]:
    """The lines that the child says, until it is gone. Raises :class:`TimeoutError` if it says none for too long."""
    rest, heard_s = b"", time.monotonic()
    while True:
        gone = process.poll() is not None
        ready, _, _ = select.select([fd], [], [], 0 if gone else _LOOK_S)
        piece = os.read(fd, 1 << 16) if ready else b""
        if not piece and (ready or gone):
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)
        if lines:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > watchdog_s:
            raise TimeoutError
