"""``Output``: what a command prints, kept up to a limit and counted beyond it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from types import TracebackType
from typing import Self

__all__ = ["Output"]

_PIECE = 1 << 16
_PIPE = 1 << 20


class Output:
    """A pipe: ``writer`` goes to the command, :meth:`listen` reads the other end on the event loop.

    kept, count
        Its first ``most`` bytes; how many there were.
    """

    def __init__(self, most: int) -> None:
        self.kept = bytearray()
        self.count = 0
        self._most = most
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reader, False)
        with contextlib.suppress(OSError, AttributeError):  # a user may have so many large pipes; Linux alone has them
            fcntl.fcntl(self._reader, fcntl.F_SETPIPE_SZ, _PIPE)
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def listen(self) -> None:
        """The command has its end: close ours of it, and read."""
        os.close(self.writer)
        self.writer = -1
        self._loop.add_reader(self._reader, self._read)

    async def drained(self, patience_s: float) -> None:
        """All is read that was printed before now; while somebody holds the pipe open, what is in it is all."""
        self._read_all()
        if not self._ended.is_set():
            try:
                async with asyncio.timeout(patience_s):
                    await self._ended.wait()
            except TimeoutError:
                self._read_all()

    def _read(self) -> None:
        self._take()

    def _read_all(self) -> None:
        """What is in the pipe: no more than it holds, whoever goes on printing."""
        for _ in range(_PIPE // _PIECE + 1):
            if not self._take():
                return

    def _take(self) -> bool:
        """One piece; whether there may be more."""
        if self._ended.is_set():
            return False
        try:
            piece = os.read(self._reader, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self._loop.remove_reader(self._reader)
            self._ended.set()
            return False
        self.count += len(piece)
        self.kept += piece[: max(0, self._most - len(self.kept))]
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.remove_reader(self._reader)
        os.close(self._reader)
        if self.writer >= 0:
            os.close(self.writer)
