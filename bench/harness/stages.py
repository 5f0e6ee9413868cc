"""``stages``: where the time of a run of `letters` goes."""

from __future__ import annotations

import cProfile
import pstats
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from hudsim.agents.noop import Noop
from hudsim.bench.harness.floors import Floors
from hudsim.bench.harness.watch import Watch
from hudsim.coding_envs.letters.tasks import env, tasks
from hudsim.eval import Agent, Job, Limits, LocalRuntime, Provider, Run, rollout

__all__ = ["profile", "stages"]

_WARM_UP = 10
_LISTED = 30


async def stages(count: int) -> dict[str, dict[str, float]]:
    """Median microseconds by stage, of the ``run`` and of its ``floor``; one at a time and by turns, in this process,
    each committed.
    """
    runs, floors = Watch(), Watch()
    async with AsyncExitStack() as stack:
        folder, provider, job = await _ready(stack)
        planned = await job.plan(list(tasks)[:1], 1 + _WARM_UP + count, {})
        await _made(planned[0], Noop(), provider, job)
        bare = await Floors.start(stack, planned[0], folder / "floors")
        for run in planned[1:]:
            with runs.watching():
                agent = runs.timed("agent", Noop().__call__)
                await runs.timed("run", _made)(run, agent, runs.provider(provider), job)
            await floors.timed("run", bare.run)(floors.timed)
    return {"run": runs.medians(_WARM_UP), "floor": floors.medians(_WARM_UP)}


async def profile(count: int) -> None:
    """Print to stderr what the event loop's thread does in ``count`` runs, by the functions' own time.

    Under the profiler a call takes about twice as long.
    """
    profiler = cProfile.Profile()
    async with AsyncExitStack() as stack:
        _, provider, job = await _ready(stack)
        planned = await job.plan(list(tasks)[:1], count, {})
        profiler.enable()
        for run in planned:
            await _made(run, Noop(), provider, job)
        profiler.disable()
    pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(_LISTED)


async def _ready(stack: AsyncExitStack) -> tuple[Path, Provider, Job]:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="hudsim-bench-")))
    provider = await stack.enter_async_context(LocalRuntime(env))
    return folder, provider, await stack.enter_async_context(await Job.start("letters", runs=folder))


async def _made(run: Run, agent: Agent, provider: Provider, job: Job) -> None:
    """As a taskset makes it."""
    await rollout(run, agent, provider, Limits())
    await job.finish(run)
