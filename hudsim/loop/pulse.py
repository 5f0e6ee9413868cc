"""``Pulse``: since when the sim thread has been inside the simulator, readable without its GIL."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

__all__ = ["Pulse"]


class Pulse:
    """One 64-bit word: 0 while idle, else the monotonic nanosecond at which the current work began.

    Made with :meth:`shared`, the word lies in memory that a supervising process maps too. That one sees the
    work's age even while this process's GIL is held by native code that never returns.
    """

    def __init__(self, memory: mmap.mmap | bytearray | None = None) -> None:
        self._memory = memory if memory is not None else bytearray(8)
        self._word = memoryview(self._memory).cast("q")

    @classmethod
    def shared(cls, fd: int) -> Pulse:
        """Over the first page of ``fd`` (a file of at least 8 bytes); the descriptor may be closed afterwards."""
        return cls(mmap.mmap(fd, mmap.PAGESIZE))

    @staticmethod
    def create_fd() -> int:
        """A new descriptor to share with a child process; the memory behind it has no name and dies with it."""
        fd = os.memfd_create("hudsim-pulse") if hasattr(os, "memfd_create") else _unlinked_file()
        os.ftruncate(fd, mmap.PAGESIZE)
        return fd

    @property
    def busy_since_ns(self) -> int:
        """0 while idle, else when the current work began."""
        return self._word[0]

    @busy_since_ns.setter
    def busy_since_ns(self, value: int) -> None:
        self._word[0] = value


def _unlinked_file() -> int:
    import tempfile

    fd, path = tempfile.mkstemp(prefix="hudsim-pulse-")
    Path(path).unlink()
    return fd
