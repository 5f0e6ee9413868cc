"""``Processes``: those of this host, and which of them come from which."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

__all__ = ["Processes", "spent_ns", "threads"]

_FRESH_S = 0.125
"""How old what is told may be."""


class Processes:
    """Looked at for all who ask at once."""

    _seen_s = 0.0
    _children: dict[int, list[tuple[int, int]]] = {}  # noqa: RUF012 - replaced, never changed

    @classmethod
    def below(cls, pid: int) -> tuple[list[int], int]:
        """The processes that come from ``pid``, and how much memory they hold at most [bytes]."""
        now_s = time.monotonic()
        if now_s - cls._seen_s > _FRESH_S:
            cls._seen_s, cls._children = now_s, _all_processes()
        found, memory, here = [], 0, [pid]
        while here:
            below = [child for parent in here for child in cls._children.get(parent, [])]
            memory += sum(size for _, size in below)
            here = [child for child, _ in below]
            found += here
        return found, memory


def spent_ns(pids: Iterable[int]) -> int:
    """How long these processes ran, and those that they started and waited for; those that are gone left out [ns]."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            ticks += sum(map(int, _stat(pid)[11:15]))
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def threads(pid: int) -> list[str]:
    """The folders in /proc of a process's threads; [] if it is gone."""
    try:
        return [entry.path for entry in os.scandir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _resident(thread: str) -> int:
    with contextlib.suppress(OSError):
        return int(_stat(thread.removeprefix("/proc/"))[21])
    return 0


def _stat(pid: int | str) -> list[bytes]:
    """What proc(5) says of it after its name: the third field is the first."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - thousands a second
        return file.read().rpartition(b")")[2].split()


def _all_processes() -> dict[int, list[tuple[int, int]]]:
    children: dict[int, list[tuple[int, int]]] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                words = _stat(entry.name)
                held = int(words[21])
                if words[0] == b"Z" and int(words[17]) > 1:  # its first thread has ended, and says nothing of the rest
                    held = max(map(_resident, threads(int(entry.name))), default=0)
                children.setdefault(int(words[1]), []).append((int(entry.name), held * page))
    return children
