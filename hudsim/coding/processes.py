"""``Processes``: those of this host, and which of them come from which."""

from __future__ import annotations

import contextlib
import os
import time

__all__ = ["Processes"]

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


def _all_processes() -> dict[int, list[tuple[int, int]]]:
    children: dict[int, list[tuple[int, int]]] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{entry.name}/stat", "rb") as file:  # noqa: PTH123 - thousands a second
                    words = file.read().rpartition(b")")[2].split()
                children.setdefault(int(words[1]), []).append((int(entry.name), int(words[21]) * page))
    return children
