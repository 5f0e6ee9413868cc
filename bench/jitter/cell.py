"""``Cell``: one rate under one load: how late ticks were by the world's own account, and as seen from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hudsim.bench.jitter.loads import Crowded, beside
from hudsim.bench.shared.fed import fed
from hudsim.bench.shared.series import quantiles
from hudsim.bridges.testcard import TestCardBridge
from hudsim.net import Address
from hudsim.robot.cadence import Cadence
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec

__all__ = ["Cell"]


@dataclass
class Cell:
    """
    late_us
        Of each turn, by how much each tick's step began after its deadline, as the world's record says.
    arrival_us
        Of each turn, by how much each observation came later to the agent than the promptest of the turn did, each held
        against the deadline of its tick. A tick that was late, the step and the way are in it.
    """

    rate_hz: int
    load: str
    late_us: list[list[float]] = field(default_factory=list)
    arrival_us: list[list[float]] = field(default_factory=list)
    cadence: Cadence = field(default_factory=Cadence)

    async def turn(self, seconds: float) -> None:
        """A world of its own, ticking for so long."""
        world_class = Crowded if self.load == "gil" else TestCardBridge
        spec = WorldSpec.of(world_class, {"cameras": 0})
        async with RobotEndpoint.spawn(spec, mode="realtime", rate_hz=self.rate_hz) as world:
            episode = await world.reset(seed=0)
            with beside(self.load, Address.parse(world.capability().url).port):
                async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
                    first = await robot.get_observation()
                    taken_ns, places = await fed(robot, first, int(seconds * self.rate_hz))
                    cadence = Cadence.from_json((await world.result(episode.token))["cadence"])
        count = cadence.late.count
        self.late_us.append([cadence.late.quantile(i / max(1, count - 1)) / 1e3 for i in range(count)])
        offsets_us = np.array(taken_ns) / 1e3 - np.array(places) * 1e6 / self.rate_hz
        self.arrival_us.append([float(us) for us in offsets_us - offsets_us.min()])
        self.cadence.merge(cadence)

    def to_json(self) -> dict[str, Any]:
        cadence = self.cadence
        return {
            "rate_hz": self.rate_hz,
            "load": self.load,
            **{name: getattr(cadence, name) for name in ("ticks", "missed", "starved", "skipped")},
            "missed_share": round(cadence.missed / max(1, cadence.ticks + cadence.missed), 5),
            "late_us": quantiles([us for turn in self.late_us for us in turn]),
            "arrival_us": quantiles([us for turn in self.arrival_us for us in turn]),
        }
