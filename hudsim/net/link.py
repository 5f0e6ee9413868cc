"""``Link``: one WebSocket connection, whose ends are typed errors."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from hudsim.errors import ConnectError, FrameTooLarge, HudsimError, LinkLost
from hudsim.loop import SimThread
from hudsim.net.frames import Close
from hudsim.net.stream import State, Stream

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

    def __init__(self, stream: Stream, peer: str) -> None:
        self._stream = stream
        self.peer = peer

    async def send(self, frame: bytes | bytearray | str) -> None:
        """Send one frame whole; waits while the socket's buffer is full."""
        try:
            await self._stream.send(frame)
        except EOFError:
            raise self._lost() from None

    def open_gate(self) -> None:
        """Allow :meth:`send_now`; only the server's end may, on the loop thread. Does nothing over TLS."""
        self._stream.open_gate()

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> bool:
        """Hand a binary frame to the socket at once, from any thread, if nothing waits before it; whether it was.

        It is made up of ``pieces``, of which nothing is kept.
        """
        return self._stream.send_now(pieces)

    def shut_gate(self) -> None:
        """No :meth:`send_now` any more. Idempotent."""
        self._stream.shut_gate()

    def lend(self, sim: SimThread, job: Callable[[], None]) -> None:
        """Have ``sim`` read what comes next, if that is possible: it runs ``job`` for it, and that :meth:`read_now`.

        On the loop thread. :meth:`receive` gets nothing until the frame turns out to be for the loop thread.
        """
        self._stream.lend(sim, job)

    def read_now(self) -> bytes | None:
        """On the thread that it is lent to: the frame that has come. None: the loop thread has it."""
        return self._stream.inlet.read()

    def keep(self) -> None:
        """On that thread: the frame that was read last is its own."""
        self._stream.inlet.keep()

    def give_back(self) -> None:
        """On that thread: the loop thread is to :meth:`receive` the frame that was read last, and reads on."""
        self._stream.inlet.give_back()

    def take_back(self) -> None:
        """On the loop thread: it reads on by itself. Idempotent."""
        self._stream.inlet.take_back()

    async def receive(self) -> bytes | str:
        """The next frame. One at a time: raises RuntimeError while somebody else waits for it."""
        try:
            return await self._stream.receive()
        except EOFError:
            raise self._lost() from None

    async def ended(self) -> None:
        """Until the connection is closed, by whichever end."""
        await self._stream.ended()

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
            raise self._lost()
        return working.result()

    def gone(self) -> HudsimError | None:
        """How the link ends or has ended, as far as that shows while nobody receives. None: it does not."""
        state, transport = self._stream.state, self._stream.transport
        if state is State.CLOSED:
            return self._lost()
        if state is State.CLOSING:
            return LinkLost(f"{self.peer}: the connection is being closed", close_code=None, close_reason="")
        if transport.is_closing() or _socket(transport).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return LinkLost(f"{self.peer} is gone without a goodbye", close_code=None, close_reason="")
        return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close with a code and a reason (cut at 120 bytes). Idempotent; ends within the closing timeout."""
        await self._stream.close(Close(code, reason.encode()[:120].decode(errors="ignore")))

    def abort(self) -> None:
        """Cut the connection without a word."""
        self._stream.abort()

    def reset(self) -> None:
        """Cut it so that the peer learns of it at once, whatever it has not read yet, which is lost."""
        transport = self._stream.transport
        if not transport.is_closing():  # else its descriptor may be somebody else's by now
            _socket(transport).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._stream.abort()

    @property
    def same_host(self) -> bool:
        """Whether its other end seems to be on this host: it has the address that it dialled. A tunnel may have too."""
        ends = [self._stream.transport.get_extra_info(name) for name in ("sockname", "peername")]
        return None not in ends and ends[0][0] == ends[1][0]

    @property
    def extensions(self) -> list[Any]:
        """The WebSocket extensions that were agreed on: none, ever."""
        return []

    def _lost(self) -> HudsimError:
        close = self._stream.received or self._stream.sent
        code, reason = (close.code, close.reason) if close else (None, "")
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


def tune(transport: asyncio.Transport, *, local: bool) -> None:
    """Small frames leave at once; on a real network a dead host is noticed within about half a minute."""
    sock: socket.socket | None = transport.get_extra_info("socket")
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
