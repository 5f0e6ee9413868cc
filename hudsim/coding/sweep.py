"""``sweep``: whose rooms there are on this host, and the removal of what dead owners left."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from hudsim.coding.cgroups import remove_groups
from hudsim.coding.place import CGROUPS, LOCK, ROOT_LOCK, changing, state_folder
from hudsim.coding.tree import remove_tree

__all__ = ["Owned", "clean", "clean_once", "live"]

_DEAD = ".dead-"


@dataclass(frozen=True, slots=True)
class Owned:
    """What one process has: its id, its command line, for how long it has had it [s], and its folders' names."""

    pid: int
    command: str
    age_s: float
    rooms: tuple[str, ...]
    folder: Path


@functools.cache
def clean_once() -> None:
    """As :func:`clean`, the first time in this process."""
    clean()


def live() -> list[Owned]:
    """Of this user's processes that live, the oldest first."""
    found = []
    with changing():
        for folder in _places():
            if _is_held(folder / LOCK):
                pid = int(folder.name.partition("-")[0])
                rooms = tuple(sorted(path.name for path in folder.glob("*-*") if path.is_dir()))
                age_s = time.clock_gettime(time.CLOCK_REALTIME) - (folder / LOCK).stat().st_mtime
                found.append(Owned(pid, _command(pid), max(0.0, age_s), rooms, folder))
    return sorted(found, key=lambda owned: -owned.age_s)


def clean() -> list[str]:
    """Remove what dead owners left; says what. Blocks: not on the event loop."""
    state = state_folder()
    with changing():
        for folder in _places():
            if not _is_held(folder / LOCK):
                with contextlib.suppress(FileNotFoundError):  # its process has just ended, and removed it
                    folder.rename(state / f"{_DEAD}{folder.name}")
        for lock in state.glob(f"{ROOT_LOCK}*"):
            if not _is_held(lock):
                lock.unlink()
    dead = list(state.glob(f"{_DEAD}*"))
    removed = _killed([folder.name.removeprefix(_DEAD) for folder in dead])
    for folder in dead:
        with contextlib.suppress(FileNotFoundError):
            groups = [Path(line) for line in (folder / CGROUPS).read_text().splitlines()]
            remove_groups([group for group in groups if group.name.startswith("hudsim-")])
            removed += [str(group) for group in groups]
        removed += [str(path) for path in folder.glob("*-*") if path.is_dir()]
        remove_tree(folder)
    return removed


def _killed(names: list[str]) -> list[str]:
    """Kill what was on its way into a sandbox when its owner died: its own command line names the owner's folder."""
    marks = [f"{state_folder()}/{name}/".encode() for name in names]
    found = []
    for entry in Path("/proc").iterdir() if marks else ():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and entry.stat().st_uid in (os.geteuid(), 0):
                command = (entry / "cmdline").read_bytes()
                if any(mark in command for mark in marks):
                    os.kill(int(entry.name), signal.SIGKILL)
                    found.append(f"process {entry.name}")
    return found


def _places() -> list[Path]:
    return [path for path in state_folder().iterdir() if path.name[:1].isdigit() and path.is_dir()]


def _is_held(path: Path) -> bool:
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"
