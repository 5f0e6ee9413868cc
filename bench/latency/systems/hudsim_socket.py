"""hudsim over its socket: all arrays in the frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import numpy as np

from hudsim.loop.run import new_event_loop as plain_event_loop
from hudsim.loop.run import own_process
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
from hudsim.wire.ring import LARGE

__all__ = ["PACKAGES", "new_event_loop", "opened", "played"]

PACKAGES = ("hudsim", "websockets", "uvloop", "numpy")

Trip = Callable[[], Awaitable[None]]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """As :func:`hudsim.loop.run` runs a program."""
    own_process()
    return plain_event_loop()


def opened(payload: dict[str, Any], serve: object) -> AbstractAsyncContextManager[Trip]:
    """A world process in lockstep, and an agent for each of its slots."""
    return played(payload, shared_memory=False)


@asynccontextmanager
async def played(payload: dict[str, Any], *, shared_memory: bool) -> AsyncIterator[Trip]:
    """Raises RuntimeError if the arrays did not go the way that was asked for."""
    spec = WorldSpec("hudsim.bench.latency.still:StillBridge", {"file": payload["file"]})
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(RobotEndpoint.spawn(spec, mode="lockstep", num_envs=payload["slots"]))
        tokens = [(await world.reset()).token for _ in range(payload["slots"])]
        way: dict[str, Any] = {"shared_memory": shared_memory, "encodings": ()}
        dials = [RobotClient.connect(world.capability(), token=token, **way) for token in tokens]
        robots = [await stack.enter_async_context(await dial) for dial in dials]
        for robot in robots:
            await robot.get_observation()
        action = np.zeros(8, np.float32)

        async def trip() -> None:
            for robot in robots:
                await robot.send_action(action)
            for robot in robots:
                await robot.get_observation()

        yield trip
        for robot, token in zip(robots, tokens, strict=True):
            await robot.end("max_steps")
            await robot.get_observation()
            record = await world.result(token)
            asked = record["ticks"] if shared_memory and payload["bytes"] > LARGE else 0
            if record["by_memory"] < asked:
                raise RuntimeError(f"{record['by_memory']} of {asked} observations came through shared memory")
