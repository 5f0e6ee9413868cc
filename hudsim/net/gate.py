"""``Gate``: a connection's transport that one more thread may write whole frames to."""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from typing import Any

__all__ = ["Gate"]

_BINARY_FINAL = 0x82


class Gate:
    """Stands in for ``transport``; what the loop thread writes through it and what another thread sends never mix.

    A frame that another thread sends goes to the socket at once, in one system call and without a copy, while
    nothing else waits. Handing it to the loop thread instead costs two thread switches, about 50 µs. What the
    socket does not take at once the loop thread sends, before anything of its own.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._lock = threading.Lock()
        self._rest: list[bytes | memoryview] = []
        # Our own descriptor: the transport's number may be another connection's by the time that it is used.
        self._fd: int | None = os.dup(transport.get_extra_info("socket").fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """As the transport's, after what another thread has begun."""
        with self._lock:
            if self._rest:
                self._rest.append(data)
            else:
                self._transport.write(data)

    def send_frame(self, payload: bytes) -> bool:
        """Send one binary WebSocket frame (a server's: not masked) from any thread; False: it must go another way."""
        head = _head(len(payload))
        with self._lock:
            if self._fd is None or self._rest or self._transport.get_write_buffer_size():
                return False
            try:
                sent = os.writev(self._fd, (head, payload))
            except OSError:  # full, or gone: the loop thread will see which
                return False
            if sent < len(head) + len(payload):
                self._rest.append(memoryview(head + payload)[sent:])
                self._loop.call_soon_threadsafe(self._flush)
        return True

    def close(self) -> None:
        """As the transport's."""
        self.release()
        self._transport.close()

    def abort(self) -> None:
        """As the transport's."""
        self.release()
        self._transport.abort()

    def release(self) -> None:
        """Let no other thread write any more; the socket closes when the transport does. Idempotent."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _flush(self) -> None:
        with self._lock:
            for piece in self._rest:
                self._transport.write(piece)
            self._rest.clear()


def _head(size: int) -> bytes:
    """A frame's header (RFC 6455, §5.2)."""
    if size < 126:
        return bytes((_BINARY_FINAL, size))
    if size < 1 << 16:
        return struct.pack(">BBH", _BINARY_FINAL, 126, size)
    return struct.pack(">BBQ", _BINARY_FINAL, 127, size)
