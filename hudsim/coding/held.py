"""``Held``: what the processes of a sandbox hold that no folder shows: files without a name, and memory as files."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from hudsim.coding.processes import threads
from hudsim.coding.tree import Use

__all__ = ["Held", "of_process", "shared_bytes", "terminals", "tmp_bytes"]

_TMP = ("tmp", "var/tmp", "dev/shm")
_NAME_BYTES = 1024
"""Of the kernel's memory, what a file takes that is empty."""
_FRESH_S = 0.125
_MOST_LOOKED, _ENDLESS = 200_000, 1 << 62
_PIDFD_GETFD = 438


@dataclass(frozen=True, slots=True)
class Held:
    """
    disk
        Bytes on the disk of files that were deleted while open, and number of them.
    memory
        Bytes of memory that has a descriptor and no name (``memfd_create``).
    """

    disk: Use
    memory: int

    @classmethod
    def by(cls, pids: Iterable[int], uid: int, first: int) -> Self:
        """By these processes, of files that belong to ``uid``; ``first`` is the sandbox's first process.

        What is mapped and has no descriptor any more is seen by root alone, what is on its way through a socket by
        nobody, and what a thread of a process that lets nobody look has for itself by root alone. More than 200,000
        descriptors and mappings count as endless. Blocks: for a second or two, if there are as many.
        """
        disk: dict[tuple[int, int], int] = {}
        memory: dict[int, int] = {}
        counted = _devices(first)
        for number, about in enumerate(about for pid in pids for about in _held(pid)):
            if number > _MOST_LOOKED:
                return cls((_ENDLESS, _ENDLESS), _ENDLESS)
            if about.st_nlink or about.st_uid != uid or about.st_dev in counted:
                continue
            if about.st_dev == _memory():
                memory[about.st_ino] = about.st_blocks * 512
            else:
                disk[about.st_dev, about.st_ino] = about.st_blocks * 512
        return cls((sum(disk.values()), len(disk)), sum(memory.values()))


def tmp_bytes(first: int) -> int:
    """What the sandbox's folders in memory take, with what the kernel has for each file there; 0: not to be seen."""
    used = 0
    with contextlib.suppress(OSError):
        for folder in _TMP:
            about = os.statvfs(f"/proc/{first}/root/{folder}")
            used += (about.f_blocks - about.f_bfree) * about.f_frsize + (about.f_files - about.f_ffree) * _NAME_BYTES
    return used


def terminals(first: int) -> int:
    """How many there are in the sandbox; 0: not to be seen."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{first}/root/dev/pts")) - 1  # noqa: PTH208 - and "ptmx"
    return 0


def shared_bytes() -> int:
    """Memory of this host's that files in memory take, and what processes share. Looked at for all who ask at once."""
    return _shared(int(time.monotonic() / _FRESH_S))


@functools.lru_cache(maxsize=1)
def _shared(_: int) -> int:
    with contextlib.suppress(OSError), open("/proc/meminfo", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(b"Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def of_process(pid: int, name: str) -> bytes:
    """A file in /proc about a process's memory; by a thread of it, if its first one has ended. b"": it has none."""
    for folder in (f"/proc/{pid}", *threads(pid)):
        with contextlib.suppress(OSError), open(f"{folder}/{name}", "rb") as file:  # noqa: PTH123
            if found := file.read():
                return found
    return b""


def _held(pid: int) -> Iterator[os.stat_result]:
    """All that it has open or mapped."""
    is_closed = False
    for thread in threads(pid):  # each may have descriptors of its own
        try:
            with os.scandir(f"{thread}/fd") as entries:
                yield from _known(entry.path for entry in entries)
        except PermissionError:
            is_closed = True
        except OSError:
            continue
        yield from _known([f"{thread}/exe"])
    if is_closed:
        yield from _taken(pid)
    if os.geteuid() == 0:  # to others the kernel does not say what is mapped
        for line in of_process(pid, "maps").splitlines():
            if line.endswith(b" (deleted)"):
                start, end = (int(word, 16) for word in line.split(None, 1)[0].split(b"-"))
                yield from _known([f"/proc/{pid}/map_files/{start:x}-{end:x}"])


def _known(paths: Iterable[str]) -> Iterator[os.stat_result]:
    for path in paths:
        with contextlib.suppress(OSError):
            yield os.stat(path)  # noqa: PTH116 - thousands


def _taken(pid: int) -> Iterator[os.stat_result]:
    """What is open in a process that lets nobody of its own user look: that user's sandbox it is still."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    with contextlib.suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            for name in os.listdir(f"/proc/{pid}/fdinfo"):  # noqa: PTH208
                fd = call(_PIDFD_GETFD, process, int(name), 0)
                if fd >= 0:
                    try:
                        yield os.fstat(fd)
                    finally:
                        os.close(fd)
        finally:
            os.close(process)


def _devices(first: int) -> set[int]:
    """Of the sandbox's folders in memory: they are counted whole."""
    found = set()
    for folder in _TMP:
        with contextlib.suppress(OSError):
            found.add(os.stat(f"/proc/{first}/root/{folder}").st_dev)  # noqa: PTH116
    return found


@functools.cache
def _memory() -> int:
    """The device of all that is made by memfd_create, and of what processes share."""
    fd = os.memfd_create("which", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)
