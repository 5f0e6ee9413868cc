"""HUD's robot bridge and its RobotClient as they are shipped: asyncio's loop, permessage-deflate."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import numpy as np
from hud.capabilities.robot import RobotClient  # type: ignore[import-not-found,unused-ignore]
from hud.environment.robot import (  # type: ignore[import-not-found,unused-ignore]
    RobotBridge,
    RobotEndpoint,
    serve_bridge,
)

__all__ = ["PACKAGES", "Still", "opened"]

PACKAGES = ("hud", "websockets", "numpy")
_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


@asynccontextmanager
async def opened(payload: dict[str, Any], serve: object) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A simulator process, and an agent for each of its slots."""
    async with AsyncExitStack() as stack:
        world = RobotEndpoint.spawn([sys.executable, __file__, payload["file"], str(payload["slots"])])
        await world.start()
        stack.push_async_callback(world.stop)
        (capability,) = await world.capabilities()
        tokens = [(await world.reset())["token"] for _ in range(payload["slots"])]
        robots = []
        for token in tokens:
            robots.append(robot := await RobotClient.connect(capability, token=token))
            stack.push_async_callback(robot.close)
        for robot in robots:
            await robot.get_observation()
        action = np.zeros(8, np.float32)

        async def trip() -> None:
            for robot in robots:
                await robot.send_action(action)
            for robot in robots:
                await robot.get_observation()

        yield trip


class Still(RobotBridge):  # type: ignore[misc,unused-ignore]
    """Shows prepared arrays; each tick writes its number into the state."""

    step_timeout = 3600.0  # it waits while the others have their turns

    def __init__(self, file: str, slots: int) -> None:
        super().__init__()
        with np.load(file) as arrays:
            self._data = {
                f"observation/{name}": np.repeat(array[np.newaxis], slots, 0) for name, array in arrays.items()
            }
        features: dict[str, Any] = {
            name: {"role": "observation", "dtype": str(array.dtype), "shape": list(array.shape[1:])}
            for name, array in self._data.items()
        }
        action = {"role": "action", "dtype": "float32", "shape": [8]}
        self.contract = {"control_rate": 50, "features": {**features, "action": action}}
        self.num_envs = slots

    def reset(self, **_: Any) -> str:
        self._data["observation/state"][:] = 0
        return "stay still"

    def step(self, action: Any) -> None:
        self._data["observation/state"] += 1

    def get_observation(self) -> tuple[dict[str, Any], Any]:
        return self._data, np.zeros(self.num_envs, np.bool_)


if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    serve_bridge(Still(sys.argv[1], int(sys.argv[2])))
