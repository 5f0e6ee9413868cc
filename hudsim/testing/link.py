"""``FaultyLink``: a network between a client and a server that fails on request."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from hudsim.net import Address

__all__ = ["FaultyLink", "Lane"]

_PIECE = 64 << 10
_IN_FLIGHT = 64  # pieces of a lane that may be delayed at once; then its sender feels it


class Lane:
    """One direction of a :class:`FaultyLink`; what is set holds for the bytes that come afterwards.

    delay_s
        How much later each byte arrives. Order is kept.
    dropped
        True: bytes vanish, and nobody is told.
    carried
        Bytes delivered so far.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.dropped = False
        self.carried = 0
        self._open = asyncio.Event()
        self._open.set()

    def stall(self) -> None:
        """Take nothing any more, so that the sender's buffers fill up, until :meth:`resume`."""
        self._open.clear()

    def resume(self) -> None:
        """Take what has been held up, and go on."""
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry what ``reader`` gives to ``writer``, until its end."""
        in_flight: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_IN_FLIGHT)
        now = asyncio.get_running_loop().time
        arriving = asyncio.create_task(self._arrive(in_flight, writer))
        try:
            while True:
                await self._open.wait()
                piece = await reader.read(_PIECE)
                await self._open.wait()
                if piece and self.dropped:
                    continue
                await in_flight.put((now() + self.delay_s, piece))
                if not piece:
                    await arriving
                    return
        finally:
            arriving.cancel()

    async def _arrive(self, in_flight: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        now = asyncio.get_running_loop().time
        while True:
            due, piece = await in_flight.get()
            if (rest := due - now()) > 0:
                await asyncio.sleep(rest)
            if not piece:
                writer.write_eof()
                return
            writer.write(piece)
            self.carried += len(piece)
            await writer.drain()


class FaultyLink:
    """Relays TCP connections to ``host:port`` from a free port of its own on 127.0.0.1.

    ::

        async with FaultyLink("127.0.0.1", port) as link:
            robot = await RobotClient.connect(link.through(url))
            link.delay_s = 0.05          # both directions; link.up and link.down are the two Lanes
            link.down.stall()
            link.cut()

    up, down
        The lanes client → server and server → client.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self.up, self.down = Lane(), Lane()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}

    @property
    def address(self) -> Address:
        """Where it listens. Only while it is entered."""
        if self._server is None:
            raise RuntimeError("the link has no address before it is entered")
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def through(self, url: str) -> str:
        """The same URL, by way of this link."""
        there, here = Address.parse(url), self.address
        return Address(here.host, here.port, there.path, there.bearer, there.tls).url

    @property
    def delay_s(self) -> float:
        """Seconds by which both lanes delay; reading gives the longer of them."""
        return max(self.up.delay_s, self.down.delay_s)

    @delay_s.setter
    def delay_s(self, seconds: float) -> None:
        self.up.delay_s = self.down.delay_s = seconds

    def drop(self) -> None:
        """Become a black hole: both lanes lose all bytes, and connections stay up."""
        self.up.dropped = self.down.dropped = True

    def stall(self) -> None:
        """Stop both lanes."""
        self.up.stall()
        self.down.stall()

    def resume(self) -> None:
        """Carry again, in both lanes; what was dropped stays lost."""
        for lane in (self.up, self.down):
            lane.dropped = False
            lane.resume()

    def cut(self) -> None:
        """Reset every connection at both ends. New ones are carried again."""
        for task, writers in list(self._connections.items()):
            for writer in writers:
                writer.transport.abort()
            task.cancel()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        ending = list(self._connections)
        self.cut()
        if ending:
            await asyncio.wait(ending, timeout=5.0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = [writer]
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                far_reader, far_writer = await asyncio.open_connection(*self._target)
                self._connections[task].append(far_writer)
                await self._relay(reader, writer, far_reader, far_writer)
        finally:
            for end in self._connections.pop(task):
                end.transport.abort()

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        """Until both ends have finished, or either is gone."""
        lanes = [
            asyncio.create_task(self.up.carry(reader, far_writer)),
            asyncio.create_task(self.down.carry(far_reader, writer)),
        ]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
