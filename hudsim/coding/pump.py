"""``Source`` and ``Sink``: a command's descriptors on the event loop, with back-pressure both ways."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Callable

__all__ = ["Sink", "Source"]

_PIECE = 1 << 16


class Source:
    """Reads ``fd`` and hands every piece to ``deliver``, in order. The descriptor is closed by :meth:`close`."""

    def __init__(self, fd: int, deliver: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._flowing = False
        self._left: int | None = None
        os.set_blocking(fd, False)
        self.resume()

    def pause(self) -> None:
        """Read no more for now: what comes stays in the pipe, and holds up who writes there."""
        if self._flowing:
            self._flowing = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._flowing and not self._ended.is_set():
            self._flowing = True
            self._loop.add_reader(self._fd, self._read)

    async def ended(self) -> None:
        """Until everybody who could write there is gone."""
        await self._ended.wait()

    async def drained(self, patience_s: float) -> None:
        """The command is over: until its end of file, or, if others hold it open for longer than ``patience_s``,
        until all is delivered that they had written by then.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._ended.wait()
        if not self._ended.is_set():
            (self._left,) = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4)))
            if not self._left:
                self._end()
            await self._ended.wait()

    def close(self) -> None:
        """Idempotent."""
        self._end()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _end(self) -> None:
        self.pause()
        self._ended.set()

    def _read(self) -> None:
        try:
            piece = os.read(self._fd, _PIECE if self._left is None else min(self._left, _PIECE))
        except BlockingIOError:
            return
        except OSError:  # a terminal whose last user is gone
            piece = b""
        if piece and self._left is not None:
            self._left -= len(piece)
        if not piece or self._left == 0:
            self._end()
        if piece:
            self._deliver(piece)


class Sink:
    """Writes to a descriptor what it is given, as fast as that is taken.

    full
        Called with True when more has been given than was taken, and with False when all of it is.
    """

    def __init__(self, full: Callable[[bool], None]) -> None:
        self._full = full
        self._loop = asyncio.get_running_loop()
        self._fd = -1
        self._finish: Callable[[int], None] | None = None
        self._waiting = bytearray()
        self._watching = self._finished = self._gone = self._held = False

    def open(self, fd: int, finish: Callable[[int], None] | None = None) -> None:
        """Begin. ``finish`` is called with ``fd`` when all is written and no more comes. None: ``fd`` is closed."""
        os.set_blocking(fd, False)
        self._fd, self._finish = fd, finish
        self._write()

    def give(self, data: bytes) -> None:
        """More to write. Once nobody reads there any more it is dropped."""
        if self._gone or self._finished:
            return
        idle = not self._waiting
        self._waiting += data
        if idle:
            if self._fd >= 0:
                self._write()
            self._hold(bool(self._waiting))

    def end(self) -> None:
        """No more comes. Idempotent."""
        if not self._finished:
            self._finished = True
            if self._fd >= 0 and not self._waiting:
                self._write()

    def close(self) -> None:
        """Drop what is not written yet. Idempotent."""
        self._unwatch()
        self._gone = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._waiting.clear()
        self._hold(False)

    def _hold(self, held: bool) -> None:
        if held != self._held:
            self._held = held
            self._full(held)

    def _write(self) -> None:
        while self._waiting:
            try:
                written = os.write(self._fd, memoryview(self._waiting)[:_PIECE])
            except BlockingIOError:
                if not self._watching:
                    self._watching = True
                    self._loop.add_writer(self._fd, self._write)
                return
            except OSError:  # nobody reads there any more
                self.close()
                return
            del self._waiting[:written]
        self._unwatch()
        if self._finished:
            if self._finish is None:
                self.close()
            else:
                self._finish(self._fd)
        self._hold(False)  # last: it may bring more at once

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._fd)
