"""``Throughput``: runs a second of `letters` with `noop`, beside their floors."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hudsim.agents.noop import Noop
from hudsim.bench.harness.floors import Floors
from hudsim.bench.shared.progress import progress
from hudsim.coding_envs.letters.tasks import env, tasks
from hudsim.eval import Job, LocalRuntime, Provider, SubprocessRuntime, Taskset

__all__ = ["System", "throughput"]

_TASKS = Taskset("letters", list(tasks)[:10])
_AT_ONCE = (1, 8)

Work = Callable[[], Awaitable[Any]]


@dataclass
class System:
    """What takes turns of ``runs`` runs, ``at_once`` of them at a time.

    floors
        What does the same work bare; together they are its floor.
    turns_s
        Seconds of each turn.
    rows_kept
        Runs that the disk has in the end. None: it keeps none.
    """

    name: str
    at_once: int
    runs: int
    work: Work
    floors: tuple[System, ...] = ()
    turns_s: list[float] = field(default_factory=list)
    rows_kept: int | None = None

    @property
    def run_ms(self) -> float:
        """A run's share of the median turn."""
        return statistics.median(self.turns_s) / self.runs * 1e3

    @property
    def thousand_s(self) -> float:
        """What 1,000 runs took, all turns together."""
        return statistics.fmean(self.turns_s) / self.runs * 1e3

    def to_json(self) -> dict[str, Any]:
        floor_ms = sum(floor.run_ms for floor in self.floors)
        return {
            "system": self.name,
            "at_once": self.at_once,
            "runs": self.runs * len(self.turns_s),
            "rows_kept": self.rows_kept,
            "run_ms": round(self.run_ms, 3),
            "runs_per_s": round(1e3 / self.run_ms, 1),
            "thousand_s": round(self.thousand_s, 2),
            "floor_ms": round(floor_ms, 3) if self.floors else None,
            "ratio_to_floor": round(self.run_ms / floor_ms, 2) if self.floors else None,
        }


async def throughput(turns: int, group: int) -> list[System]:
    """Floors and harness by turns, each a ``group`` of runs of ten tasks; one turn more, the first, warms up."""
    runs = len(_TASKS) * group
    sample = (await _TASKS.run(Noop(), runs=None)).runs[0]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hudsim-bench-")))
        bare = await Floors.start(stack, sample, folder / "floors")
        agent = System("agent alone", 1, runs, _crowd(bare.agent, runs, 1))
        commit = System("sqlite3, a commit each", 1, runs, _crowd(bare.commit, runs, 1))
        calls = {
            (place, n): System(f"WebSocket, {place}", n, runs, _crowd(partial(bare.session, place), runs, n))
            for place in bare.ports
            for n in _AT_ONCE
        }
        local = await stack.enter_async_context(LocalRuntime(env))
        apart = await stack.enter_async_context(SubprocessRuntime(env))
        systems, jobs = [agent, commit, *calls.values()], list[tuple[System, Job, Path]]()
        for place, provider, is_kept in (("local", local, True), ("subprocess", apart, True), ("local", local, False)):
            for n in _AT_ONCE:
                path = folder / str(len(systems))
                job = await Job.start("letters", group=group, runs=path if is_kept else None)
                stack.push_async_callback(job.close)
                floors = (agent, calls[place, n], *([commit] if is_kept else []))
                name = f"{place}, {'committed' if is_kept else 'in memory'}"
                systems.append(System(name, n, runs, _batch(provider, job, n), floors))
                jobs += [(systems[-1], job, path)] if is_kept else []
        await _by_turns(systems, turns)
        for system, job, path in jobs:
            system.rows_kept = (await Job.load(job.id, runs=path)).ran
    return systems


def _batch(provider: Provider, job: Job, at_once: int) -> Work:
    return lambda: _TASKS.run(Noop(), runtime=provider, job=job, max_concurrent=at_once)


def _crowd(work: Work, times: int, at_once: int) -> Work:
    """``work`` so many times, by ``at_once`` workers."""

    async def share(numbers: Iterator[int]) -> None:
        for _ in numbers:
            await work()

    async def crowd() -> None:
        numbers = iter(range(times))
        await asyncio.gather(*(share(numbers) for _ in range(at_once)))

    return crowd


async def _by_turns(systems: list[System], turns: int) -> None:
    for turn in range(turns + 1):
        progress(f"runs of letters: turn {turn} of {turns}" if turn else "runs of letters: a turn to warm up")
        for system in systems:
            began_s = time.perf_counter()
            await system.work()
            if turn:
                system.turns_s.append(time.perf_counter() - began_s)
