"""``spawn``: starting what a sandbox is made of, and seeing that it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from hudsim.loop.worker import Worker

__all__ = ["Said", "ended", "spawn"]

_SHORT_S = 1.0


class Said:
    """A pipe on which a child says what we read once it is up, or has failed. ``text``: what it said so far."""

    def __init__(self) -> None:
        self.text = ""
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def read(self) -> str:
        with contextlib.suppress(BlockingIOError):
            self.text += os.read(self._reader, 4096).decode(errors="replace")
        return self.text

    async def more(self, within_s: float) -> None:
        """Wait until it says more, for so long at most."""
        if await _readable(self._reader, within_s):
            self.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.read()
        os.close(self._reader)
        os.close(self.writer)


async def spawn(command: Sequence[str], fds: Sequence[int], said: Said, *, cwd: str | None) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, with an empty environment; cancelled, it waits until that is known."""
    making = asyncio.wrap_future(_spawner.submit(_popen, command, fds, said.writer, cwd))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        popen = await making
        popen.kill()
        popen.wait()
        raise


async def ended(popen: subprocess.Popen[bytes], first: int | None, *, within_s: float) -> None:
    """Kill ``first``, with which all the rest dies (None: it ends by itself), and wait until both are gone."""
    with _watched(first) as first_fd, _watched(popen.pid) as fd:
        if first_fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(first_fd, signal.SIGKILL)
            await _readable(first_fd, within_s)
        elif first is not None:
            popen.kill()
        if fd is not None and not await _readable(fd, _SHORT_S if first is not None else within_s):
            popen.kill()
    if popen.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(popen.wait, within_s)


def _popen(command: Sequence[str], fds: Sequence[int], said: int, cwd: str | None) -> subprocess.Popen[bytes]:
    """On the spawner's thread."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=fds,
        start_new_session=True,
        env={},
        cwd=cwd,
    )


@contextlib.contextmanager
def _watched(pid: int | None) -> Iterator[int | None]:
    """A descriptor of that process. None: it is gone, or this system has none."""
    try:
        fd = -1 if pid is None else os.pidfd_open(pid)
    except (ProcessLookupError, AttributeError):
        fd = -1
    try:
        yield None if fd < 0 else fd
    finally:
        if fd >= 0:
            os.close(fd)


async def _readable(fd: int, within_s: float) -> bool:
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, event.set)
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
    return True


_spawner = Worker("sandbox-spawner")
"""Starts all sandboxes, and lasts: the kernel ends one when the *thread* that started it ends."""
