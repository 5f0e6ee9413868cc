"""``Link``: one WebSocket connection, whose ends are typed errors."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Coroutine
from typing import Any, TypeVar

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from hudsim.errors import ConnectError, FrameTooLarge, HudsimError, LinkLost
from hudsim.net.gate import Gate

__all__ = ["CLOSE_TIMEOUT_S", "RESET", "UNREACHABLE", "Link", "tune"]

R = TypeVar("R")

CLOSE_TIMEOUT_S = 1.0
"""How long a closing handshake may take before the socket is cut."""

UNREACHABLE = 4502
"""The close code of a server that could not reach what it stands before; the reason names that."""

RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which closing a socket resets it."""


class Link:
    """Frames both ways. Silence never ends it; the peer's end, a reset or a frame too large does.

    Every method raises :class:`~hudsim.errors.LinkLost` once the peer is gone, or
    :class:`~hudsim.errors.FrameTooLarge` if a frame was over the limit, or :class:`~hudsim.errors.ConnectError` if the
    peer stands before something that it could not reach; ``peer`` names it in messages. Each error's ``data`` holds
    the close frame's ``close_code`` (None: there was none) and ``close_reason``.
    """

    def __init__(self, connection: Connection, peer: str) -> None:
        self._ws = connection
        self._gate: Gate | None = None
        self.peer = peer

    async def send(self, frame: bytes | bytearray | str) -> None:
        """Send one frame whole; waits while the socket's buffer is full."""
        ws = self._ws
        if ws.protocol.state is State.OPEN and not ws.transport.get_write_buffer_size():
            # Nothing is before it: the way through `send` costs as much again.
            if isinstance(frame, str):
                ws.protocol.send_text(frame.encode())
            else:
                ws.protocol.send_binary(frame)
            ws.send_data()
            return
        try:
            await self._ws.send(frame)
        except ConnectionClosed as closed:
            raise self._lost(closed) from None

    def open_gate(self) -> None:
        """Allow :meth:`send_now`; only the server's end may, on the loop thread. Does nothing over TLS."""
        transport = self._ws.transport
        if self._gate is None and transport.get_extra_info("sslcontext") is None:
            self._gate = Gate(transport, asyncio.get_running_loop())
            self._ws.transport = self._gate  # type: ignore[assignment]  # it is one, by delegation

    def send_now(self, frame: bytes) -> bool:
        """Hand a binary frame to the socket at once, from any thread, if nothing waits before it; whether it was."""
        if self._gate is None or self._ws.protocol.state is not State.OPEN:
            return False
        return self._gate.send_frame(frame)

    def shut_gate(self) -> None:
        """No :meth:`send_now` any more. Idempotent."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.release()

    async def receive(self) -> bytes | str:
        """The next frame."""
        try:
            return await self._ws.recv()
        except ConnectionClosed as closed:
            raise self._lost(closed) from None

    async def ended(self) -> None:
        """Until the connection is closed, by whichever end."""
        await self._ws.wait_closed()

    async def while_open(self, work: Coroutine[Any, Any, R]) -> R:
        """What ``work`` gives. If the link ends first, ``work`` is cancelled and the link's end raised."""
        working = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self.ended())
        try:
            await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait({working})
        if working.cancelled():
            raise self._lost(self._ws.protocol.close_exc)
        return working.result()

    def gone(self) -> HudsimError | None:
        """How the link ends or has ended, as far as that shows while nobody receives. None: it does not."""
        state, transport = self._ws.protocol.state, self._ws.transport
        if state is State.CLOSED:
            return self._lost(self._ws.protocol.close_exc)
        if state is State.CLOSING:
            return LinkLost(f"{self.peer}: the connection is being closed", close_code=None, close_reason="")
        if transport.is_closing() or _socket(transport).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return LinkLost(f"{self.peer} is gone without a goodbye", close_code=None, close_reason="")
        return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close with a code and a reason (cut at 120 bytes). Idempotent; ends within the closing timeout."""
        short = reason.encode()[:120].decode(errors="ignore")
        with contextlib.suppress(ConnectionClosed, OSError, asyncio.TimeoutError):
            await self._ws.close(code, short)

    def abort(self) -> None:
        """Cut the connection without a word."""
        self._ws.transport.abort()

    def reset(self) -> None:
        """Cut it so that the peer learns of it at once, whatever it has not read yet, which is lost."""
        transport = self._ws.transport
        if not transport.is_closing():  # else its descriptor may be somebody else's by now
            _socket(transport).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            transport.abort()

    @property
    def same_host(self) -> bool:
        """Whether its other end seems to be on this host: it has the address that it dialled. A tunnel may have too."""
        ends = (self._ws.local_address, self._ws.remote_address)
        return None not in ends and ends[0][0] == ends[1][0]

    @property
    def extensions(self) -> list[Any]:
        """The WebSocket extensions that were agreed on: none, ever."""
        return list(self._ws.protocol.extensions)

    def _lost(self, closed: ConnectionClosed) -> HudsimError:
        code = closed.rcvd.code if closed.rcvd else (closed.sent.code if closed.sent else None)
        reason = closed.rcvd.reason if closed.rcvd else (closed.sent.reason if closed.sent else "")
        end: dict[str, Any] = {"close_code": code, "close_reason": reason}
        if code == FrameTooLarge.code:
            return FrameTooLarge(f"{self.peer}: a frame is over the size limit ({reason or 'no more is known'})", **end)
        if code == UNREACHABLE:
            return ConnectError(f"{self.peer} cannot reach {reason}", **end)
        how = f"closed the connection with {code} {reason}".rstrip() if code else "is gone without a goodbye"
        return LinkLost(f"{self.peer} {how}", **end)


def _socket(transport: asyncio.Transport) -> socket.socket:
    sock: socket.socket = transport.get_extra_info("socket")
    return sock


def tune(connection: Connection, *, local: bool) -> None:
    """Small frames leave at once; on a real network a dead host is noticed within about half a minute."""
    sock: socket.socket | None = connection.transport.get_extra_info("socket")
    if sock is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if local:
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000)
