"""``InlineWorld``: a world in this process, its sim thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hudsim.bridge import Episode
from hudsim.capability import Capability
from hudsim.errors import EpisodeError
from hudsim.loop import SimThread
from hudsim.net import Address
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.server import RobotServer
from hudsim.robot.spec import Serving
from hudsim.robot.world import make_world

__all__ = ["InlineWorld"]


_JOIN_S = 0.5


class InlineWorld:
    """Serves what ``make`` gives. ``make`` is called on the sim thread, as everything else of the bridge."""

    def __init__(
        self, make: Callable[..., RobotBridge], serving: Serving, task_args: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._make = make
        self._serving = serving.with_bearer()
        self._task_args = task_args
        self._sim: SimThread | None = None
        self._server: RobotServer | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Make the world and serve it. Idempotent."""
        async with self._starting:
            await self._start()

    async def _start(self) -> None:
        if self._server is not None:
            return
        how = self._serving
        sim = SimThread()
        sim.start()
        try:
            made = sim.submit(make_world, self._make, num_envs=how.num_envs, adjust=how.adjust)
            world = await asyncio.wrap_future(made)
            server = RobotServer.of(world, sim, how, task_args=self._task_args)
            await server.start(how.host, how.port)
        except BaseException:
            sim.stop()
            raise
        self._sim, self._server = sim, server

    async def stop(self) -> None:
        """Stop serving and close the world. Idempotent. A hung sim thread is left behind; no process can end it."""
        server, self._server = self._server, None
        if server is not None and self._sim is not None:
            try:
                await server.stop()
            finally:
                self._sim.stop()
            await asyncio.to_thread(self._sim.join, _JOIN_S)

    @property
    def address(self) -> Address:
        """Where it is served, with the token that opens the whole server."""
        return self._running().address

    def capability(self) -> Capability:
        """Where agents connect."""
        return self._running().capability()

    async def reset(self, seed: int | None, task_args: dict[str, Any]) -> Episode:
        """Start an episode."""
        return await self._running().reset(seed=seed, **task_args)

    async def result(self, token: str | None) -> dict[str, Any]:
        """The episode's record."""
        return await self._running().result(token)

    def _running(self) -> RobotServer:
        if self._server is None:
            raise EpisodeError("the world is not running; start() it first")
        return self._server
