"""Small ways to play an episode through a real connection."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from hudsim.bridge import Episode
from hudsim.robot.bridge import Array
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.session import Heard
from tests.net.http import get

__all__ = ["first_of", "joined", "metric", "play", "zeros"]


def zeros(robot: RobotClient, rows: int | None = None) -> Array:
    """An action of zeros, or a chunk of ``rows``."""
    feature = robot.contract.action
    shape = feature.shape or ()
    return np.zeros(shape if rows is None else (rows, *shape), feature.dtype)


@asynccontextmanager
async def joined(
    world: RobotEndpoint, *, seed: int = 0, **task_args: Any
) -> AsyncIterator[tuple[RobotClient, Episode]]:
    """A new episode of ``world`` and a client that has claimed it."""
    episode = await world.reset(seed=seed, **task_args)
    async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
        yield robot, episode


async def first_of(world: RobotEndpoint, token: str | None = None) -> Heard:
    """What a new connection that claims ``token`` is shown first; raises what it is told instead."""
    async with await RobotClient.connect(world.capability(), token=token) as robot:
        return await robot.get_observation()


async def play(
    robot: RobotClient, ticks: int, action: Callable[[Heard], Array] | None = None, first: Heard | None = None
) -> list[Heard]:
    """The observations of up to ``ticks`` ticks, one action for each; ``first`` is the one already taken."""
    seen = [first or await robot.get_observation()]
    for _ in range(ticks):
        if seen[-1].over:
            break
        await robot.send_action(zeros(robot) if action is None else action(seen[-1]))
        seen.append(await robot.get_observation())
    return seen


async def metric(world: RobotEndpoint, name: str) -> int:
    """One number of the server's ``/metrics``."""
    address = world.address
    status, body = await get(address, "/metrics", Authorization=f"Bearer {address.bearer}")
    assert status == 200
    found = re.search(rf"^{re.escape(name)} (\d+)$", body, re.MULTILINE)
    return int(found[1]) if found else 0
