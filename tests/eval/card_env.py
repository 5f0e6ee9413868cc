"""An environment of one test card, to be served from this file: by this process, or by one of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

from hudsim.environment import Environment
from hudsim.eval import Taskset
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec

env = Environment("cards", settings={"num_envs": 1, "max_ticks": 5})

card = env.robot(
    lambda settings: RobotEndpoint.spawn(
        WorldSpec(
            "hudsim.bridges.testcard:TestCardVectorBridge",
            {"width": 16, "height": 16, "cameras": 1, "state": 4, "max_ticks": settings["max_ticks"]},
        ),
        num_envs=settings["num_envs"],
    )
)


@env.template()
async def read(seed: int = 0) -> AsyncGenerator[Any, Any]:
    episode = await card.reset(seed=seed)
    yield episode["prompt"]
    record = await card.result()
    if record["is_error"]:
        yield record
    else:
        yield {"score": 1.0, "info": {"pid": os.getpid(), "ticks": record["ticks"]}}


@env.template()
async def think(seconds: float = 60.0) -> AsyncGenerator[Any, Any]:
    """No robot: the prompt comes after a while."""
    await asyncio.sleep(seconds)
    yield "think"
    yield {"score": 1.0, "info": {"pid": os.getpid()}}


tasks = Taskset("cards", [read(seed=seed) for seed in range(4)])
