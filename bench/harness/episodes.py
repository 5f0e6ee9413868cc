"""``Pair``: one episode of `arm-reach`, bare and as a graded run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hudsim.bridges.arm.bridge import ArmBridge
from hudsim.bridges.arm.tasks import reach, reach_env
from hudsim.eval import Job, Limits, LocalRuntime, Provider, Run, rollout
from hudsim.policies.scripted import Scripted
from hudsim.robot.agent import RobotAgent
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint

__all__ = ["Pair", "compared", "episodes"]


@dataclass
class Pair:
    """A seed both ways: seconds (``commit_s`` is within ``run_s``) and ticks."""

    bare_s: float = 0.0
    run_s: float = 0.0
    commit_s: float = 0.0
    bare_ticks: int = 0
    run_ticks: int = 0


async def episodes(count: int) -> list[Pair]:
    """Without cameras, played by the script: each seed both ways by turns, and who is first alternates."""
    agent, pairs = RobotAgent(Scripted()), list[Pair]()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hudsim-bench-")))
        world = RobotEndpoint(ArmBridge, task="reach", privileged=True, cameras=False)
        await stack.enter_async_context(world)
        provider = await stack.enter_async_context(LocalRuntime(reach_env, settings={"cameras": False}))
        job = await stack.enter_async_context(await Job.start("arm-reach", runs=folder))
        for seed, run in enumerate(await job.plan([reach(seed=seed) for seed in range(count + 1)], 1, {})):
            pair = Pair()
            ways = [partial(_bare, pair, world, agent, seed), partial(_graded, pair, run, agent, provider, job)]
            for way in ways if seed % 2 else reversed(ways):
                await way()
            pairs.append(pair)
    return pairs[1:]  # the first is the warm-up


async def _bare(pair: Pair, world: RobotEndpoint, agent: RobotAgent, seed: int) -> None:
    """As `hudsim run` plays it, without its recorder."""
    began_s = time.perf_counter()
    episode = await world.reset(seed=seed, difficulty="easy")
    async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
        agent.bind(robot.contract, robot.params)
        await agent.play(robot)
    record = await world.result(episode.token)
    pair.bare_s, pair.bare_ticks = time.perf_counter() - began_s, record["ticks"]


async def _graded(pair: Pair, run: Run, agent: RobotAgent, provider: Provider, job: Job) -> None:
    """As a taskset makes it."""
    began_s = time.perf_counter()
    await rollout(run, agent, provider, Limits())
    played_s = time.perf_counter()
    await job.finish(run)
    ended_s = time.perf_counter()
    pair.run_s, pair.commit_s = ended_s - began_s, ended_s - played_s
    pair.run_ticks = run.grade.info["ticks"] if run.grade is not None else 0


def compared(pairs: list[Pair]) -> dict[str, Any]:
    """Medians over the seeds; ``added_ms`` is that of the differences, ``commit_ms`` what of it the disk takes."""

    def median_ms(of: Callable[[Pair], float]) -> float:
        return round(statistics.median(map(of, pairs)) * 1e3, 2)

    bare_ms, run_ms = median_ms(lambda pair: pair.bare_s), median_ms(lambda pair: pair.run_s)
    return {
        "episodes": len(pairs),
        "ticks": statistics.median(pair.bare_ticks for pair in pairs),
        "same_ticks": all(pair.bare_ticks == pair.run_ticks for pair in pairs),
        "bare_ms": bare_ms,
        "run_ms": run_ms,
        "added_ms": median_ms(lambda pair: pair.run_s - pair.bare_s),
        "commit_ms": median_ms(lambda pair: pair.commit_s),
        "ratio_to_floor": round(run_ms / bare_ms, 3),
    }
