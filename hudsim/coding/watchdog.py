"""``Watchdog``: looks at what no limit of the kernel's sees to, and ends what goes over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from hudsim.coding.limits import Limits
from hudsim.coding.processes import Processes
from hudsim.coding.tree import measure

__all__ = ["Watchdog"]

_EVERY_S = 0.25
_LOOK_S = 5.0
"""How long a folder is not measured at most while its file system has not lost what it may take."""


class Watchdog:
    """One a sandbox: ``start`` once it is up, ``stop`` before it goes.

    folder
        The workspace's, whose bytes and files are limited; None: there is none.
    first
        Gives the sandbox's first process as the host counts, where its memory and processes are to be counted here.
        None: control groups see to them.
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
        first: Callable[[], int | None] | None,
        end_all: Callable[[], Awaitable[None]],
    ) -> None:
        self.found: list[str] = []
        self._limits, self._folder, self._first, self._end_all = limits, folder, first, end_all
        self._task: asyncio.Task[None] | None = None
        self._used = self._ended_at = (0, 0)
        self._free = (0, 0)
        self._measured_s = 0.0

    def start(self) -> None:
        """Idempotent."""
        watched = self._folder is not None and (self._limits.workspace_bytes or self._limits.workspace_files)
        if self._task is None and (watched or self._first is not None):
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
            over = [*await self._disk_over(), *self._rest_over()]
            for words in over:
                if words not in self.found:
                    self.found.append(words)
            if over:
                with contextlib.suppress(Exception):
                    await self._end_all()

    async def _disk_over(self) -> list[str]:
        """The folder is measured when its file system has lost so much that it may be over."""
        folder, limits = self._folder, self._limits
        if folder is None or not folder.is_dir():
            return []
        most = (limits.workspace_bytes or 1 << 62, limits.workspace_files or 1 << 62)
        free = _free(folder)
        may_use = [used + max(0, before - now) for used, before, now in zip(self._used, self._free, free, strict=True)]
        is_due = time.monotonic() - self._measured_s > _LOOK_S
        if not is_due and all(use <= limit for use, limit in zip(may_use, most, strict=True)):
            return []
        self._free, self._measured_s = free, time.monotonic()
        self._used = await asyncio.to_thread(measure, folder, most_files=most[1])
        grown = [use > at for use, at in zip(self._used, self._ended_at, strict=True)]
        over = [use > limit for use, limit in zip(self._used, most, strict=True)]
        if not any(over) or not any(grown):  # who is over may still remove
            return []
        self._ended_at = self._used
        said = ["workspace: its files took more than the {:,} bytes allowed", "workspace: more than {:,} files"]
        return [
            f"{words.format(limit)} (watchdog)"
            for words, limit, is_over in zip(said, most, over, strict=True)
            if is_over
        ]

    def _rest_over(self) -> list[str]:
        first = None if self._first is None else self._first()
        if first is None:
            return []
        limits, found = self._limits, []
        pids, memory = Processes.below(first)
        if limits.memory_bytes is not None and memory > limits.memory_bytes:
            memory = sum(map(_share, pids))  # what they have in common was counted for each
        if limits.processes is not None and len(pids) >= limits.processes:
            found.append(f"processes: all {limits.processes} were running (watchdog)")
        if limits.memory_bytes is not None and memory > limits.memory_bytes:
            found.append(f"memory: more than {limits.memory_bytes:,} bytes (watchdog)")
        return found


def _free(folder: Path) -> tuple[int, int]:
    about = os.statvfs(folder)
    return about.f_bfree * about.f_frsize, about.f_ffree


def _share(pid: int) -> int:
    """The memory of a process [bytes], with its part of what it shares."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
