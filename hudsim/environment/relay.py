"""``relay``: the server's end of ``/robot/<capability>``: frames to and from a world that serves elsewhere."""

from __future__ import annotations

import asyncio

from hudsim.errors import HudsimError, LinkError
from hudsim.net import QUEUE, UNREACHABLE, Link, connect

__all__ = ["relay"]

_LEAVE_S = 1.0
_NO_CODE = 1005  # what a close frame without a code is taken for; it may not be sent
_NORMAL = 1000


async def relay(link: Link, url: str) -> None:
    """Connect to the world at ``url`` (with its bearer token) and pass every frame on unchanged, both ways.

    Each end's close becomes the other's, with its code and reason; an end that is cut off cuts the other. A world
    that cannot be reached closes the link with 4502 and a reason that names it: the link's other end raises
    :class:`~hudsim.errors.ConnectError`. Raises what kept it from the world.
    """
    try:
        world = await link.while_open(connect(url, max_queue=QUEUE))
    except LinkError as error:
        await link.close(UNREACHABLE, error.message)
        raise
    ways = [asyncio.create_task(_carry(link, world)), asyncio.create_task(_carry(world, link))]
    try:
        await link.ended()
        await asyncio.wait(ways, timeout=_LEAVE_S)  # what the agent said before it went is still the world's
    finally:
        for way in ways:
            way.cancel()
        world.abort()
        await asyncio.wait(ways)
        await world.ended()


async def _carry(source: Link, target: Link) -> None:
    """Pass frames on until either has ended; then ``target`` ends as ``source`` did."""
    try:
        while True:
            await target.send(await source.receive())
    except HudsimError as end:
        code = end.data.get("close_code")
        if code is None:
            target.abort()
        else:
            await target.close(_NORMAL if code == _NO_CODE else code, end.data["close_reason"])
