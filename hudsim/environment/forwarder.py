"""``Forwarder``: the client's end of ``/tunnel/<capability>``: a local port that leads to a daemon far away."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from types import TracebackType
from typing import Self

from hudsim.errors import HudsimError
from hudsim.net import QUEUE, Address, connect, cut, splice

__all__ = ["Forwarder"]

log = logging.getLogger(__name__)

_BACKLOG = 128
_AGAIN_S = 0.1
_STOP_S = 1.5


class Forwarder:
    """Listens on a free port of 127.0.0.1; each connection there goes through a WebSocket of its own.

    ::

        async with Forwarder(address, "shell") as forwarder:
            host, port = await forwarder.start()

    address
        The environment's server, with its bearer token. Whoever reaches the local port needs none.
    name
        The capability's name there.
    failure
        The last error of the way there: nobody reached, not admitted, no such capability, its daemon not running, the
        link lost. The local connection that met it was reset. None: there was none.
    """

    def __init__(self, address: Address, name: str) -> None:
        self.failure: HudsimError | None = None
        self._address = address.at(f"/tunnel/{name}")
        self._listener: socket.socket | None = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def start(self) -> tuple[str, int]:
        """Listen; host and port. Idempotent. Nothing is dialled before somebody connects."""
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
            self._listener.setblocking(False)
            self._listen(self._listener)
        host, port = self._listener.getsockname()
        return host, port

    async def stop(self) -> None:
        """Close the port and reset every connection. Idempotent."""
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        for task in self._carrying:
            task.cancel()
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=_STOP_S)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    def _listen(self, listener: socket.socket) -> None:
        if listener is self._listener:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # whoever came has left
        except OSError as error:
            log.warning("%s: no connection is taken for now: %s", self._address, error)
            loop.remove_reader(listener)
            loop.call_later(_AGAIN_S, self._listen, listener)
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(self._carry(sock), name="hudsim-forward")
        self._carrying.add(task)
        task.add_done_callback(partial(self._carried, sock))

    def _carried(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        """Here, not in the task itself: one that is cancelled before it begins runs none of its own clauses."""
        cut(sock)
        self._carrying.discard(task)

    async def _carry(self, sock: socket.socket) -> None:
        try:
            link = await connect(self._address, max_queue=QUEUE)
            await splice(link, sock)
            await link.close()
        except HudsimError as error:
            self.failure = error
            log.warning("%s: %s", self._address, error)
        except OSError as error:
            log.debug("the client of %s: %s", self._address, error)
