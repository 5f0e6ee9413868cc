"""A process that owns workspaces, to be killed: ``python -m tests.coding.owner N``."""

from __future__ import annotations

import asyncio
import sys

from hudsim.coding import Workspace
from hudsim.loop.run import run


async def own(count: int) -> None:
    """Start, use and stop workspaces for ever; ``ready`` is printed when the first ones are up."""
    for turn in range(1_000_000):
        workspaces = [Workspace(isolation="none") if n == 3 else Workspace() for n in range(count)]
        await asyncio.gather(*(ws.start() for ws in workspaces))
        if turn == 0:
            print("ready", flush=True)  # noqa: T201
        await asyncio.gather(*(_use(ws) for ws in workspaces))
        if turn == 0:
            print("used", flush=True)  # noqa: T201
        await asyncio.gather(*(ws.stop() for ws in workspaces))


async def _use(ws: Workspace) -> None:
    (ws.root / "file").write_text("x")
    await ws.binding()
    await ws.run(f"setsid sleep 7{ws.room.id.rpartition('-')[2]}77 & (setsid nohup sleep 8777 &) ; cat file")
    await ws.freeze()


if __name__ == "__main__":
    run(own(int(sys.argv[1])))
