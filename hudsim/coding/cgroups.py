"""``Group``: a control group of one sandbox: what it may use of memory and processes, and what it ran into."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hudsim.coding.limits import Limits

__all__ = ["Controllers", "Group", "join", "ran_ns", "remove_groups"]

_PATIENCE_S = 2.0
_NAMES = {"memory", "pids", "cpu", "cpuacct"}


@dataclass(frozen=True, slots=True)
class Controllers:
    """Where this process may make control groups.

    version
        1, 2, or None: nowhere, or not both of ``memory`` and ``pids``.
    folders
        By controller (:data:`_NAMES`) the group below which they are made; the same one in version 2.
    """

    version: int | None
    folders: dict[str, Path]

    @classmethod
    @functools.cache
    def found(cls) -> Controllers:
        """Of this process; looked for once."""
        try:
            own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
            mounts = _mounts()
        except OSError:
            return cls(None, {})
        if (unified := mounts.get("")) is not None:
            here = _below(*unified, next((path for _, names, path in own if not names), "/"))
            for base in (here, here.parent):  # a group of processes has no groups below it, but may have one beside it
                if {"memory", "pids"} <= _enabled(base) and _may_make(base):
                    return cls(2, {"memory": base, "pids": base})
        folders = {}
        for _, names, path in own:
            for name in _NAMES & set(names.split(",")):
                if name in mounts and _may_make(base := _below(*mounts[name], path)):
                    folders[name] = base
        return cls(1, folders) if {"memory", "pids"} <= set(folders) else cls(None, {})

    def group(self, name: str) -> Group:
        """A group called ``name``, in each of the folders; yet to be made."""
        return Group(self.version, {controller: folder / name for controller, folder in self.folders.items()})


class Group:
    """``paths``: the folder of each controller."""

    def __init__(self, version: int | None, paths: dict[str, Path]) -> None:
        self.version, self.paths = version, paths

    @property
    def folders(self) -> list[Path]:
        return sorted(set(self.paths.values()))

    def make(self, limits: Limits) -> None:
        """Make it, with what it may use."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        if limits.processes is not None and "pids" in self.paths:
            _write(self.paths["pids"] / "pids.max", limits.processes + _OURS)
        if limits.memory_bytes is None or "memory" not in self.paths:
            return
        memory = self.paths["memory"]
        if self.version == 1:
            _write(memory / "memory.limit_in_bytes", limits.memory_bytes)
            with contextlib.suppress(OSError):  # where swap is not counted there is no such file
                _write(memory / "memory.memsw.limit_in_bytes", limits.memory_bytes)
        else:
            _write(memory / "memory.max", limits.memory_bytes)
            with contextlib.suppress(OSError):
                _write(memory / "memory.swap.max", 0)

    def evidence(self) -> list[str]:
        """What it ran into, in words; [] nothing."""
        found = []
        if "pids" in self.paths:
            refused = _count(self.paths["pids"] / "pids.events", "max")
            found += [f"processes: {refused} could not be started (pids.events)"] if refused else []
        if "memory" in self.paths:
            name = "memory.oom_control" if self.version == 1 else "memory.events"
            killed = _count(self.paths["memory"] / name, "oom_kill")
            found += [f"memory: {killed} were killed for want of it ({name})"] if killed else []
        return found

    def remove(self) -> None:
        """Kill what is still in it, and remove it. Blocks for a moment."""
        remove_groups(self.folders)


def join(folders: Iterable[Path], pids: Iterable[int]) -> None:
    """Put processes into groups. Raises :class:`OSError`."""
    for pid in pids:
        for folder in folders:
            _write(folder / "cgroup.procs", pid)


def ran_ns(folders: Iterable[Path]) -> int | None:
    """How long all that ever was in a sandbox's groups ran, the dead included [ns]. None: none of them counts it."""
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            return int((folder / "cpuacct.usage").read_text())
        with contextlib.suppress(FileNotFoundError):
            for line in (folder / "cpu.stat").read_text().splitlines():
                if line.startswith("usage_usec "):  # version 2 alone has it, whatever is enabled
                    return int(line.split()[1]) * 1000
    return None


def remove_groups(folders: Sequence[Path]) -> None:
    """Kill what is in these groups, and remove them. Those that are not there are left out."""
    until_s = time.monotonic() + _PATIENCE_S
    for folder in folders:
        while True:
            try:
                folder.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                _kill(folder)
                if time.monotonic() > until_s:
                    break
                time.sleep(0.005)
            else:
                break


_OURS = 3
"""Processes of ours in a group: bubblewrap, the launcher, and one on its way to become a command."""


def _kill(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _mounts() -> dict[str, tuple[Path, str]]:
    """By controller ("": version 2) where it is mounted, and which group is at the root of that."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, where = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            found[""] = (Path(where), root)
        elif kind == "cgroup":
            found.update(dict.fromkeys(_NAMES & set(options.split(",")), (Path(where), root)))
    return found


def _below(mount: Path, root: str, path: str) -> Path:
    inner = path.removeprefix(root) if root != "/" else path
    return mount / inner.lstrip("/")


def _enabled(folder: Path) -> set[str]:
    try:
        return set((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return set()


def _may_make(folder: Path) -> bool:
    """Tried, as a read-only mount or a missing right is only known by trying."""
    attempt = folder / f"hudsim-try-{os.getpid()}"
    try:
        attempt.mkdir()
        attempt.rmdir()
    except OSError:
        return False
    return True


def _write(file: Path, value: int) -> None:
    file.write_text(str(value))


def _count(file: Path, key: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(f"{key} "):
                return int(line.split()[1])
    return 0
