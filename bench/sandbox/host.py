"""``Host``: what this process has on its host: processes, memory, folders, control groups, descriptors."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from hudsim.coding.place import CGROUPS, Place
from hudsim.coding.sweep import live

__all__ = ["Host", "memory_bytes"]

_OPEN = Path("/proc/self/fd")


class Host:
    """What there was when it was made; :meth:`left` says what has come since and is still there. Both block."""

    def __init__(self) -> None:
        self._place = Place.mine()
        self._before = self._now()

    def left(self) -> dict[str, int]:
        """How many of each; all zero if nothing is left."""
        now = self._now()
        return {what: len(now[what] - self._before[what]) for what in now}

    def _now(self) -> dict[str, set[str]]:
        groups = self._place.folder / CGROUPS
        noted = groups.read_text().splitlines() if groups.exists() else []
        return {
            "processes": {str(pid) for pid in _descendants()},
            "folders": {room for owned in live() if owned.pid == self._place.pid for room in owned.rooms},
            "cgroups": {group for group in noted if Path(group).exists()},
            "descriptors": {str(n) for n in range(len(list(_OPEN.iterdir())))},  # numbers are used again
        }


def memory_bytes() -> int:
    """What this process and all that it has started take together, pages that they share counted once."""
    return sum(_share(pid) for pid in {os.getpid(), *_descendants()})


def _share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _private(pid)  # of another user's, or one that may not be looked into


def _private(pid: int) -> int:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _descendants() -> set[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue  # gone meanwhile
            children[int(stat.rpartition(")")[2].split()[1])].append(int(entry.name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        waiting += (new := [pid for pid in children[waiting.pop()] if pid not in found])
        found.update(new)
    return found
