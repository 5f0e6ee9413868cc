"""``Segment``: memory without a name, which another process of this host maps too."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

__all__ = ["HEADER", "Segment"]

HEADER = 4096
"""Bytes at the start of every segment: its mark, its nonce, and room for words that both ends write."""

_MARK = b"hudsim/1 shared\n"
_NONCE = 16
_MOST = 1 << 32
_LINUX = sys.platform.startswith("linux")
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEALS = 0x1 | 0x2 | 0x4  # no seal can be taken off, and nobody can cut it short: that would kill who reads there


class Segment:
    """A ``memfd``, mapped. It has no name, so that whatever ends its holders leaves nothing behind.

    ``memory`` is all of it, writable; it stays mapped as long as anything refers to it, whoever has closed what.
    """

    def __init__(self, fd: int, size: int, nonce: bytes) -> None:
        self.memory = memoryview(mmap.mmap(fd, size))
        self._fd: int | None = fd
        self._size, self._nonce = size, nonce

    @classmethod
    def create(cls, size: int) -> Self | None:
        """``size`` bytes of zeros, of which only those that are written to take memory. None: not on this system."""
        if not _LINUX:
            return None
        import fcntl

        fd = None
        try:
            fd = os.memfd_create("hudsim-frames", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size)
            fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
            segment = cls(fd, size, secrets.token_bytes(_NONCE))
        except (OSError, ValueError):  # no descriptors left, or no address space: the socket carries it then
            if fd is not None:
                os.close(fd)
            return None
        segment.memory[: len(_MARK)] = _MARK
        segment.memory[len(_MARK) : len(_MARK) + _NONCE] = segment._nonce
        return segment

    @property
    def offer(self) -> dict[str, Any]:
        """What the other end needs to find it: plain JSON, for :meth:`attach`."""
        return {"pid": os.getpid(), "fd": self._fd, "size": self._size, "nonce": self._nonce.hex()}

    @classmethod
    def attach(cls, offer: Mapping[str, Any]) -> Self | None:
        """The segment that ``offer`` tells of; None if it is not to be found here, as from another host.

        The offer is not trusted: process and descriptor may be others' here. What is opened must be such a memory,
        of that size, sealed, and hold the nonce.
        """
        if not _LINUX:
            return None
        try:
            pid, fd, size, nonce = (offer[key] for key in ("pid", "fd", "size", "nonce"))
            wanted = bytes.fromhex(nonce)
        except (KeyError, ValueError, TypeError):
            return None
        if not all(type(number) is int and number >= 0 for number in (pid, fd, size)) or not HEADER < size <= _MOST:
            return None
        with contextlib.suppress(OSError, ValueError):
            return cls._opened(Path(f"/proc/{pid}/fd/{fd}"), size, wanted)
        return None

    @classmethod
    def _opened(cls, path: Path, size: int, nonce: bytes) -> Self | None:
        import fcntl

        if not stat.S_ISREG(path.stat().st_mode):  # opening anything else could block, or do something
            return None
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if fcntl.fcntl(opened, _F_GET_SEALS) & _SEALS != _SEALS or os.fstat(opened).st_size != size:
                return None
            segment = cls(opened, size, nonce)
            segment._fd = None
        finally:
            os.close(opened)
        mark = bytes(segment.memory[: len(_MARK) + _NONCE])
        return segment if mark == _MARK + nonce else None

    def shut(self) -> None:
        """Nobody can attach any more. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
