"""The floor of a WebSocket: bare `websockets` on uvloop, one prepared buffer for each action; no codec, no world."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from websockets.asyncio import server
from websockets.asyncio.client import connect

from hudsim.bench.latency.systems.hudsim_socket import new_event_loop
from hudsim.bench.latency.systems.tcp_floor import ACTION, REST

__all__ = ["PACKAGES", "new_event_loop", "opened"]

PACKAGES = ("websockets", "uvloop")


@asynccontextmanager
async def opened(payload: dict[str, Any], serve: Callable[..., int]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A server process, ``slots`` connections."""
    url = f"ws://127.0.0.1:{serve(payload['bytes'] + REST)}"
    async with AsyncExitStack() as stack:
        dials = [connect(url, compression=None, ping_interval=None, max_size=None) for _ in range(payload["slots"])]
        ends = [await stack.enter_async_context(dial) for dial in dials]
        action = bytes(ACTION)

        async def trip() -> None:
            for end in ends:
                await end.send(action)
            for end in ends:
                await end.recv()

        yield trip


async def _serve(size: int) -> None:
    buffer = bytes(size)

    async def answer(ws: server.ServerConnection) -> None:
        async for _ in ws:
            await ws.send(buffer)

    listening = server.serve(answer, "127.0.0.1", 0, compression=None, ping_interval=None, max_size=None)
    async with listening as listener:
        print(next(iter(listener.sockets)).getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
