"""openpi-client's own client, and a server that does what openpi's WebsocketPolicyServer does.

In openpi the world is the client: it sends the observation and gets the actions. The same arrays cross, the other way
round. Its client blocks, so that several slots go one after another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from openpi_client import msgpack_numpy  # type: ignore[import-not-found,unused-ignore]
from openpi_client.websocket_client_policy import (  # type: ignore[import-not-found,unused-ignore]
    WebsocketClientPolicy,
)
from websockets.asyncio import server

__all__ = ["PACKAGES", "opened"]

PACKAGES = ("openpi-client", "websockets", "numpy")


@asynccontextmanager
async def opened(payload: dict[str, Any], serve: Callable[..., int]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A server process, ``slots`` clients."""
    with np.load(payload["file"]) as arrays:
        observation = {f"observation/{name}": array for name, array in arrays.items()}
    port = serve()
    clients = [await asyncio.to_thread(WebsocketClientPolicy, "127.0.0.1", port) for _ in range(payload["slots"])]

    async def trip() -> None:
        for client in clients:
            assert len(client.infer(observation)["actions"]) == 8

    yield trip


async def _serve() -> None:
    async def answer(ws: server.ServerConnection) -> None:
        packer = msgpack_numpy.Packer()
        await ws.send(packer.pack({}))
        async for frame in ws:
            msgpack_numpy.unpackb(frame)
            await ws.send(packer.pack({"actions": np.zeros(8, np.float32), "server_timing": {"infer_ms": 0.0}}))

    async with server.serve(answer, "127.0.0.1", 0, compression=None, max_size=None) as listener:
        print(next(iter(listener.sockets)).getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
