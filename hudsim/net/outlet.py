"""``Outlet``: what is written to a connection, by its loop thread and by one more that may send whole frames."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from typing import Any

__all__ = ["Outlet"]


class Outlet:
    """Frames to a transport's socket; those of two threads never mix.

    What nothing waits before goes to the socket at once, in one system call and without a copy; the transport gets
    what the socket did not take. Over TLS the transport gets everything, and ``own``, the socket's descriptor, is None.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._lock = threading.Lock()
        self._rest: list[bytes | memoryview] = []
        sock: Any = transport.get_extra_info("socket")
        plain = transport.get_extra_info("sslcontext") is None
        self.own: int | None = sock.fileno() if plain else None
        self._other: int | None = None

    @property
    def other(self) -> int | None:
        """The other thread's descriptor of the socket; None while it has none."""
        return self._other

    def write(self, pieces: Sequence[bytes]) -> None:
        """On the loop thread: one frame, in pieces, after everything that was written before."""
        with self._lock:
            self._flush_rest()
            rest: Sequence[bytes | memoryview] = pieces
            if self.own is not None and not self._transport.get_write_buffer_size():
                rest = _write(self.own, pieces)
            for piece in rest:
                self._transport.write(piece)

    def write_now(self, pieces: Sequence[bytes | memoryview]) -> bool:
        """From another thread: one frame at once, if nothing is before it; whether it was.

        Handing it to the loop thread instead costs two thread switches, about 50 µs. What the socket does not take
        at once the loop thread sends, before anything of its own.
        """
        with self._lock:
            if self._other is None or self._rest or self._transport.get_write_buffer_size():
                return False
            rest = _write(self._other, pieces)
            if rest is pieces:  # full, or gone: the loop thread will see which
                return False
            if rest:
                self._rest.extend(map(bytes, rest))  # what it stands in may be written to again
                self._loop.call_soon_threadsafe(self._flush)
        return True

    def open(self) -> None:
        """On the loop thread: allow :meth:`write_now`. Does nothing over TLS."""
        if self.own is not None and self._other is None:
            # Another descriptor: the transport's number may be another connection's by the time that it is used.
            self._other = os.dup(self.own)

    def shut(self) -> None:
        """No :meth:`write_now` any more; until then the socket does not close, though its transport may. Idempotent."""
        with self._lock:
            if self._other is not None:
                os.close(self._other)
                self._other = None

    def finish(self) -> None:
        """Nothing more comes from this side: the peer gets an end of file, after all that was written."""
        self._flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def _flush(self) -> None:
        with self._lock:
            self._flush_rest()

    def _flush_rest(self) -> None:
        for piece in self._rest:
            self._transport.write(piece)
        self._rest.clear()


def _write(descriptor: int, pieces: Sequence[bytes | memoryview]) -> Sequence[bytes | memoryview]:
    """What the socket did not take of ``pieces``, which themselves are given back if it took nothing."""
    try:
        sent = os.writev(descriptor, pieces)
    except OSError:
        return pieces
    rest: list[bytes | memoryview] = []
    for piece in pieces:
        if sent < len(piece):
            rest.append(memoryview(piece)[sent:] if sent else piece)
        sent = max(0, sent - len(piece))
    return rest
