"""A relay before a world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hudsim.environment.relay import relay
from hudsim.net import Server
from hudsim.robot.endpoint import RobotEndpoint
from tests.robot.playing import metric

__all__ = ["SOON_S", "before", "until_ended"]

SOON_S = 4.0


@asynccontextmanager
async def before(url: str) -> AsyncIterator[tuple[str, Server]]:
    """A server that relays ``/robot/arm`` to ``url``: the relay's own URL, and the server."""
    server = Server({"/robot/arm": lambda link: relay(link, url)}, bearer="the-environments", max_queue=4)
    address = await server.start()
    try:
        yield address.at("/robot/arm").url, server
    finally:
        await server.stop()


async def until_ended(world: RobotEndpoint, name: str) -> None:
    """Until one episode of ``world`` is counted in the metric ``name``."""
    async with asyncio.timeout(SOON_S):
        while await metric(world, name) != 1:  # noqa: ASYNC110 - it is asked over HTTP
            await asyncio.sleep(0.02)
