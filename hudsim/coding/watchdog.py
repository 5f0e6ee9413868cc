"""``Watchdog``: looks at what no limit of the kernel's sees to, and ends what goes over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from hudsim.coding.held import Held, of_process, shared_bytes, terminals, tmp_bytes
from hudsim.coding.limits import Limits
from hudsim.coding.processes import Processes
from hudsim.coding.steps import to_its_end
from hudsim.coding.tree import Use, measure

__all__ = ["Watchdog"]

_EVERY_S = 0.25
_LOOK_S = 5.0
_NO_LIMIT = 1 << 62


class Watchdog:
    """One a sandbox: ``start`` once it is up, ``stop`` before it goes.

    folder
        The workspace's, whose bytes and files are limited; None: there is none.
    first
        Gives the sandbox's first process as the host counts; None: there is none, and only its folder is seen.
    uid
        To whom all that it writes belongs.
    grouped
        Control groups see to its memory and processes.
    end_all
        What kills all that runs in it.
    found
        What went over, in words.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        folder: Path | None,
        first: Callable[[], int | None],
        uid: int,
        grouped: bool,
        end_all: Callable[[], Awaitable[None]],
    ) -> None:
        self.found: list[str] = []
        self._limits, self._folder, self._first, self._uid, self._end_all = limits, folder, first, uid, end_all
        self._grouped = grouped
        self._task: asyncio.Task[None] | None = None
        self._ended_at = (0, 0)
        self._disk = _Dear(limits.workspace_bytes or _NO_LIMIT, limits.workspace_files or _NO_LIMIT)
        self._memory = _Dear(limits.memory_bytes or _NO_LIMIT)

    def start(self) -> None:
        """Idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="hudsim-watchdog")

    async def stop(self) -> None:
        """Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                over = [*await self._disk_over(), *await self._rest_over()]
            except OSError:  # this process is short of descriptors, say, and will not always be
                continue
            for words in over:
                if words not in self.found:
                    self.found.append(words)
            if over:
                with contextlib.suppress(Exception):
                    await self._end_all()

    async def _disk_over(self) -> list[str]:
        """The folder is measured, with what was deleted while open, when its file system has lost enough for that."""
        folder, most = self._folder, self._disk.most
        if folder is None or not folder.is_dir() or most == (_NO_LIMIT, _NO_LIMIT):
            return []
        about = os.statvfs(folder)
        if not self._disk.is_due(-about.f_bfree * about.f_frsize, -about.f_ffree):
            return []
        self._disk.used = used = await to_its_end(self._on_disk, folder)
        grown = [use > at for use, at in zip(used, self._ended_at, strict=True)]
        over = [use > limit for use, limit in zip(used, most, strict=True)]
        if not any(over) or not any(grown):  # who is over may still remove
            return []
        self._ended_at = used
        said = ["workspace: its files took more than the {:,} bytes allowed", "workspace: more than {:,} files"]
        return [
            f"{words.format(limit)} (watchdog)"
            for words, limit, is_over in zip(said, most, over, strict=True)
            if is_over
        ]

    def _on_disk(self, folder: Path) -> Use:
        size, files = measure(folder, most_files=self._disk.most[1])
        if size > self._disk.most[0] or files > self._disk.most[1]:
            return size, files
        held, nameless = self._held().disk
        return size + held, files + nameless

    def _held(self) -> Held:
        first = self._first()
        return Held((0, 0), 0) if first is None else Held.by(Processes.below(first)[0], self._uid, first)

    async def _rest_over(self) -> list[str]:
        first, limits, found = self._first(), self._limits, []
        if first is None:
            return []
        if limits.terminals is not None and terminals(first) > limits.terminals:
            found.append(f"terminals: more than {limits.terminals} (watchdog)")
        if self._grouped:
            return found
        pids, memory = Processes.below(first)
        if limits.processes is not None and len(pids) >= limits.processes:
            found.append(f"processes: all {limits.processes} were running (watchdog)")
        if limits.memory_bytes is not None:
            tmp = tmp_bytes(first)
            if self._memory.is_due(shared_bytes()):
                self._memory.used = ((await to_its_end(self._held)).memory,)
            files = tmp + self._memory.used[0]
            if memory + files > limits.memory_bytes:  # what they have in common was counted for each
                own, shared = (sum(each) for each in zip((0, 0), *map(_shares, pids), strict=True))
                memory, files = own, max(files, shared)  # a file may be mapped
            if memory + files > limits.memory_bytes:
                found.append(f"memory: more than {limits.memory_bytes:,} bytes (watchdog)")
        return found


class _Dear:
    """What takes long to measure, and so is measured when the host's own count has grown so much that it may be over.

    most
        Allowed of each thing.
    used
        Of each when it was last measured.
    """

    def __init__(self, *most: int) -> None:
        self.most = most
        self.used: tuple[int, ...] = (0,) * len(most)
        self._counts: tuple[int, ...] | None = None
        self._measured_s = 0.0

    def is_due(self, *counts: int) -> bool:
        """Whether it is to be measured now. ``counts``: of the whole host's."""
        before = self._counts or counts
        may_use = [use + max(0, now - then) for use, then, now in zip(self.used, before, counts, strict=True)]
        if time.monotonic() - self._measured_s <= _LOOK_S and all(map(int.__le__, may_use, self.most)):
            return False
        self._counts, self._measured_s = counts, time.monotonic()
        return True


def _shares(pid: int) -> tuple[int, int]:
    """The memory of a process, with its part of what it shares [bytes]: its own, and what is shared.

    Not what it reads of files: that is the host's cache.
    """
    found = dict(line.split(b":") for line in of_process(pid, "smaps_rollup").splitlines()[1:])
    names = (b"Pss", b"Pss_File", b"Pss_Shmem")
    whole, files, shared = (int(found.get(name, b"0 kB").split()[0]) * 1024 for name in names)
    return whole - files - shared, shared
