"""The floor of a socket: two blocking ends, one buffer there and one back, each as long as hudsim's frame."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from threading import Thread
from typing import Any

__all__ = ["ACTION", "PACKAGES", "REST", "opened"]

PACKAGES: tuple[str, ...] = ()
ACTION = 80
"""Bytes of an action's frame."""
REST = 400
"""Bytes of an observation's frame beside its arrays."""


@asynccontextmanager
async def opened(payload: dict[str, Any], serve: Callable[..., int]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A server of one thread a connection; ``slots`` connections."""
    size = payload["bytes"] + REST
    address = ("127.0.0.1", serve(size, payload["slots"]))
    with ExitStack() as stack:
        ends = [stack.enter_context(_tuned(socket.create_connection(address))) for _ in range(payload["slots"])]
        action, seen = bytes(ACTION), memoryview(bytearray(size))

        async def trip() -> None:
            for end in ends:
                end.sendall(action)
            for end in ends:
                _fill(end, seen)

        yield trip


def _tuned(sock: socket.socket) -> socket.socket:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _fill(sock: socket.socket, room: memoryview) -> bool:
    """Whether the peer is still there."""
    got = 0
    while got < len(room):
        if not (count := sock.recv_into(room[got:])):
            return False
        got += count
    return True


def _serve(size: int, connections: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        threads = [Thread(target=_answer, args=(_tuned(listener.accept()[0]), size)) for _ in range(connections)]
    for thread in threads:
        thread.start()


def _answer(sock: socket.socket, size: int) -> None:
    buffer, asked = bytes(size), memoryview(bytearray(ACTION))
    with sock:
        while _fill(sock, asked):
            sock.sendall(buffer)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
