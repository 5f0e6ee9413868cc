"""``ClientOpening`` and ``ServerOpening``: the library's connections, for as long as they speak HTTP."""

from __future__ import annotations

from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection
from websockets.protocol import State

from hudsim.net.frames import Close
from hudsim.net.stream import Stream

__all__ = ["ClientOpening", "ServerOpening"]

_END = b"\r\n\r\n"
_MOST_EARLY = 64 << 10


class _Opening(Connection):
    """Keeps what comes after the head of the handshake from the library's parser, for the stream that follows."""

    _server = False
    _stream: Stream | None = None
    _tail = b""
    _early: bytearray | None = None
    _lost = False

    def data_received(self, data: bytes) -> None:
        if self._early is not None:
            self._early += data
            self._hold()
            return
        seen = self._tail + data
        end = seen.find(_END)
        if end < 0:
            self._tail = seen[1 - len(_END) :]
            super().data_received(data)
            return
        cut = end + len(_END) - len(self._tail)
        super().data_received(data[:cut])
        if self._server or self.protocol.state is State.OPEN:
            self._early = bytearray(data[cut:])
            self._hold()
        elif rest := data[cut:]:  # why the server refuses
            super().data_received(rest)

    def _hold(self) -> None:
        """A client is about to become a stream. A server may yet refuse, and must see when its peer goes."""
        assert self._early is not None
        if not self._server or len(self._early) > _MOST_EARLY:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        super().connection_lost(exc)

    def stream(self, **options: Any) -> Stream:
        """What the connection is from now on; ``options`` are those of :class:`Stream`. Raises EOFError: it is gone."""
        if self._lost or self.transport.is_closing() or self._early is None:
            raise EOFError
        stream = self._stream = Stream(self.transport, server=self._server, **options)
        self.transport.resume_reading()
        if self._early:
            stream.feed(bytes(self._early))
        return stream

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """The library's server closes its connections when it stops, or a handler has returned."""
        if self._stream is None:
            await super().close(code, reason)
        else:
            await self._stream.close(Close(code, reason))


class ClientOpening(_Opening, ClientConnection):
    """A client's."""


class ServerOpening(_Opening, ServerConnection):
    """A server's."""

    _server = True
