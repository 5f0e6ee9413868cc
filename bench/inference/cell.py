"""``Cell``: one chunk strategy with one inference time: episodes of `arm-lift` in realtime."""

from __future__ import annotations

import asyncio
import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

from hudsim.bench.inference.slow import Slow
from hudsim.errors import HudsimError
from hudsim.robot.agent import RobotAgent
from hudsim.robot.cadence import Cadence
from hudsim.robot.chunks import make_chunks
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint

__all__ = ["STRATEGIES", "Cell", "Episode"]

STRATEGIES = ("open-loop", "receding", "rtc", "ensemble")

_CHUNK = 16  # actions, 0.32 s at 50 Hz


@dataclass(frozen=True)
class Episode:
    """
    success
        None: the world, not the policy, ended it.
    seam
        The largest step of any joint's target where one chunk took the place of another, rad; nan without one.
    """

    end: str
    success: bool | None
    cadence: Cadence
    seam: float


@dataclass
class Cell:
    """``infer_ms``: what an inference takes, whatever the machine."""

    strategy: str
    infer_ms: int
    episodes: list[Episode] = field(default_factory=list)

    async def turn(self, world: RobotEndpoint, seeds: range) -> None:
        """An episode of each seed, all at once."""
        self.episodes += await asyncio.gather(*(self._episode(world, seed) for seed in seeds))

    async def _episode(self, world: RobotEndpoint, seed: int) -> Episode:
        agent = RobotAgent(Slow(self.infer_ms / 1e3, _CHUNK), chunks=make_chunks(self.strategy))
        episode = await world.reset(seed=seed, difficulty="easy")
        seam = math.nan
        async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
            agent.bind(robot.contract, robot.params)
            with contextlib.suppress(HudsimError):  # its end is on record
                seam = (await agent.play(robot)).seam
        record = await world.result(episode.token)
        return Episode(record["end"], record["success"], Cadence.from_json(record["cadence"]), seam)

    def to_json(self) -> dict[str, Any]:
        cadence = Cadence()
        for episode in self.episodes:
            cadence.merge(episode.cadence)
        seams = [episode.seam for episode in self.episodes if math.isfinite(episode.seam)]
        executed = (cadence.ticks - cadence.starved) / max(1, cadence.ticks)
        return {
            "strategy": self.strategy,
            "infer_ms": self.infer_ms,
            "episodes": len(self.episodes),
            "successes": sum(bool(episode.success) for episode in self.episodes),
            "errors": sum(episode.success is None for episode in self.episodes),
            "ends": sorted({episode.end for episode in self.episodes}),
            "ticks": cadence.ticks,
            "executed_hz": round((cadence.rate_achieved_hz or 0.0) * executed, 2),
            "starved_share": round(1 - executed, 4),
            "missed": cadence.missed,
            "stale": cadence.stale,
            "seam_max": round(max(seams), 4) if seams else None,
            "action_age_ticks": cadence.summary()["action_age_ticks"],
        }
