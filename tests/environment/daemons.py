"""TCP daemons to stand behind a tunnel, each with blocking sockets and threads of its own, and the way to them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from hudsim.environment.forwarder import Forwarder
from hudsim.environment.tunnel import tunnel
from hudsim.net import Address, Server

__all__ = ["Way", "behind", "daemon", "echo", "received", "reset", "until", "was_reset"]

BEARER = "the-token"


@contextmanager
def daemon(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port where each connection runs ``serve(connection)`` in a thread; at the end all of them are cut."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []

    def run(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            serve(connection)
        connection.close()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(connection)
                threads.append(threading.Thread(target=run, args=(connection,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for sock in (listener, *connections):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10.0)


def echo(connection: socket.socket) -> None:
    """Sends back what it gets, until that ends."""
    while piece := connection.recv(1 << 16):
        connection.sendall(piece)


def received(connection: socket.socket) -> bytes:
    """Everything until the peer's end."""
    pieces = []
    while piece := connection.recv(1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def reset(connection: socket.socket) -> None:
    """Close with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, (1).to_bytes(4, "little") + bytes(4))
    connection.close()


def was_reset(connection: socket.socket, seconds: float = 5.0) -> bool:
    """Whether the connection is reset within ``seconds``. Nothing is read from it: it may be full."""
    for _ in range(int(seconds / 0.01)):
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (errno.ECONNRESET, errno.EPIPE):
            return True
        time.sleep(0.01)
    return False


async def until(fact: Callable[[], bool], seconds: float = 5.0) -> None:
    """Until ``fact()`` holds; an error if it does not within ``seconds``."""
    async with asyncio.timeout(seconds):
        while not fact():  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0.01)


@dataclass
class Way:
    """A server with the tunnel ``box``, and a forwarder's end of it."""

    server: Server
    forwarder: Forwarder
    address: Address
    port: int

    def connect(self) -> socket.socket:
        """A blocking connection to the forwarder, for use in a thread."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20.0)


@asynccontextmanager
async def behind(port: int, *, through: Callable[[Address], Address] = lambda address: address) -> AsyncIterator[Way]:
    """The way to the daemon at ``port``. ``through`` may lead the forwarder elsewhere than to the server itself."""
    server = Server({"/tunnel/box": lambda link: tunnel(link, "127.0.0.1", port)}, bearer=BEARER, max_queue=4)
    address = await server.start()
    try:
        async with Forwarder(through(address), "box") as forwarder:
            yield Way(server, forwarder, address, (await forwarder.start())[1])
    finally:
        await server.stop()
