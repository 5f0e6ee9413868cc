"""``Inlet``: a connection's socket, which one more thread may read while its loop does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable

from hudsim.net.frames import sole

__all__ = ["Inlet"]

_MOST = 1 << 16


class Inlet:
    """The other thread gets whole binary frames; with anything else that comes the loop thread reads on by itself.

    ``read_on`` is called on the loop thread when the socket is its own again, with the bytes that were read in vain.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, read_on: Callable[[bytes], None]
    ) -> None:
        self._transport, self._loop, self._read_on = transport, loop, read_on
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._on_back: Callable[[], None] = _nothing
        self._last = b""
        self._away = self._open = False

    @property
    def away(self) -> bool:
        """Whether the loop is not to read: another thread does, or its bytes are on their way back."""
        return self._away

    def lend(self, descriptor: int, on_back: Callable[[], None]) -> None:
        """On the loop thread: another thread may :meth:`read` at ``descriptor``, until ``on_back`` is called."""
        self._transport.pause_reading()
        with self._lock:
            self._away = True
            self._descriptor, self._on_back = descriptor, on_back

    def read(self) -> bytes | None:
        """From the other thread: the payload of the frame that has come. None: there is none for it."""
        with self._lock:
            if self._descriptor is None:
                return None
            try:
                data = os.read(self._descriptor, _MOST)
            except BlockingIOError:
                return None
            except OSError:  # gone: the loop thread will see how
                data = b""
            payload = sole(data)
            self._last = data
            if payload is None:
                self._return()
            self._open = payload is not None
            return payload

    def keep(self) -> None:
        """From the other thread: the frame that was read last is its own."""
        self._open = False

    def give_back(self) -> None:
        """From the other thread: the frame that was read last, and what follows, is for the loop thread."""
        with self._lock:
            self._open = False
            if self._descriptor is not None:
                self._return()

    def take_back(self, *, closing: bool = False) -> None:
        """On the loop thread: the socket is its own again, unless a frame is undecided and nothing is ``closing``."""
        with self._lock:
            if self._descriptor is None or (self._open and not closing):
                return
            self._descriptor = None
            self._on_back()
        self._home(b"")

    def _return(self) -> None:
        self._descriptor = None
        self._on_back()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to read on
            self._loop.call_soon_threadsafe(self._home, self._last)

    def _home(self, data: bytes) -> None:
        self._away = False
        self._read_on(data)


def _nothing() -> None:
    return
