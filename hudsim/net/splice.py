"""``splice``: one TCP connection carried over a link."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

from hudsim.errors import WireError
from hudsim.net.link import RESET, Link

__all__ = ["DONE", "EOF", "QUEUE", "cut", "splice"]

EOF, DONE = "eof", "done"
QUEUE = 4
"""Frames that may wait to be received at the end of a link that carries bulk: a slow reader stops the writer."""

_PIECE = 256 << 10
_LOOK_S = 0.25


async def splice(link: Link, sock: socket.socket) -> None:
    """Carry ``sock`` (connected, non-blocking; closed afterwards) over ``link`` until both directions have ended.

    The other end of the link does the same. Binary frames are the bytes. WebSocket has no half-close, so the text
    frame ``eof`` says that no more bytes come from this side, and ``done`` that all of the other side's have been
    handed on: after both, either may close, and nothing is on the way any more.

    What ends before that is cut: the socket and the link are reset, so that nobody takes what came for the whole.
    Raises the link's typed error, or OSError if it was the socket that broke.
    """
    with sock:
        try:
            await _Splice(link, sock).run()
        except WireError as error:
            cut(sock)
            await link.close(WireError.code, error.message)
            raise
        except BaseException:
            cut(sock)
            link.reset()
            await link.ended()
            raise


def cut(sock: socket.socket) -> None:
    """Close with a reset, which its peer cannot take for an end. Idempotent."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.close()


class _Splice:
    """Two pumps, and who looks after them."""

    def __init__(self, link: Link, sock: socket.socket) -> None:
        self._link, self._sock = link, sock
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[None] = self._loop.create_future()

    async def run(self) -> None:
        pumps = [self._loop.create_task(self._up()), self._loop.create_task(self._down())]

        def ended(pump: asyncio.Task[None]) -> None:
            error = None if pump.cancelled() else pump.exception()
            if self._end.done():
                return
            if error is not None:
                self._end.set_exception(error)
            elif all(other.done() for other in pumps):
                self._end.set_result(None)

        for pump in pumps:
            pump.add_done_callback(ended)
        try:
            await self._end
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)

    async def _up(self) -> None:
        """From the socket to the link."""
        while piece := await self._loop.sock_recv(self._sock, _PIECE):
            with self._watching():
                await self._link.send(piece)
            await asyncio.sleep(0)  # two quick ends would leave the loop to nobody else
        with self._watching():
            await self._link.send(EOF)

    async def _down(self) -> None:
        """From the link to the socket, until the peer has said both that it has ended and that it has all."""
        ended = done = False
        while not (ended and done):
            frame = await self._link.receive()
            with self._watching():
                if isinstance(frame, bytes) and not ended:
                    await self._loop.sock_sendall(self._sock, frame)
                elif frame == EOF and not ended:
                    ended = True
                    self._sock.shutdown(socket.SHUT_WR)
                    await self._link.send(DONE)
                elif frame == DONE and not done:
                    done = True
                else:
                    raise WireError(f"got {_kind(frame)}, expected {'nothing' if ended else 'bytes or eof'} any more")

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """What is inside waits for one side, and nobody reads from the other: look whether either has gone."""
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            if self._end.done():
                return
            if (error := self._gone()) is None:
                timer = self._loop.call_later(_LOOK_S, look)
            else:
                self._end.set_exception(error)

        timer = self._loop.call_later(_LOOK_S, look)
        try:
            yield
        finally:
            timer.cancel()

    def _gone(self) -> Exception | None:
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(number, os.strerror(number)) if number else self._link.gone()


def _kind(frame: bytes | str) -> str:
    return f"{len(frame)} bytes" if isinstance(frame, bytes) else f"the text {frame[:40]!r}"
