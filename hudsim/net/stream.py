"""``Stream``: the WebSocket protocol on a transport, after the opening handshake."""

from __future__ import annotations

import asyncio
import enum
import functools
import os
import time
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from hudsim.loop import SimThread, Vigil
from hudsim.net.frames import BINARY, CLOSE, PONG, TEXT, Close, FrameReader, Violation, apply_mask, head
from hudsim.net.inlet import Inlet
from hudsim.net.outlet import Outlet

__all__ = ["State", "Stream"]

_WRITE_LIMIT = 32 << 10
_JOINED = 16 << 10  # up to this size a copy costs less than a second piece
_RECENT_NS = 1_000_000

_Waits = dict["Stream", int]
_waits: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waits] = WeakKeyDictionary()
"""On each loop, the streams that are waited for, and since when."""


class State(enum.Enum):
    """How far a stream is: CLOSING from the first close frame or end of file, CLOSED when the transport is."""

    OPEN = enum.auto()
    CLOSING = enum.auto()
    CLOSED = enum.auto()


class Stream(asyncio.BufferedProtocol):
    """Messages over ``transport``, whose protocol it becomes.

    server
        Which end this is: a server is sent masked frames and sends none, and closes the TCP connection first.
    max_bytes
        A larger message ends the stream with 1009.
    max_queue
        So many messages may wait before no more is read. None: any number.
    close_timeout_s
        How long the end may take, from whichever side it comes, before the transport is aborted.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        server: bool,
        max_bytes: int,
        max_queue: int | None,
        close_timeout_s: float,
    ) -> None:
        self.transport = transport
        self.state = State.OPEN
        self.sent: Close | None = None
        self._server = server
        self._max_queue = max_queue
        self._close_timeout_s = close_timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(masked=server, max_bytes=max_bytes)
        self._outlet = Outlet(transport, self._loop)
        self.inlet = Inlet(transport, self._loop, self._home)
        self._paused = self._leaving = self._receiving = False
        self._vigil = Vigil()
        self._waits = _waits.setdefault(self._loop, {})
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._deadline: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(_WRITE_LIMIT)
        transport.set_protocol(self)

    @property
    def received(self) -> Close | None:
        """The peer's close frame, if there was one."""
        return self._reader.close

    # What its user does.

    async def receive(self) -> bytes | str:
        """The next message. Raises EOFError when there is none and never will be."""
        reader = self._reader
        if not reader.messages:
            if self._receiving:
                raise RuntimeError("somebody else receives from this connection already")
            self._receiving = True
            try:
                await self._arrived()
            finally:
                self._receiving = False
        message = reader.take()
        if self._paused and len(reader.messages) <= (self._max_queue or 0) // 4:
            self._resume()
        return message

    async def send(self, message: bytes | bytearray | str) -> None:
        """Send one message whole, once no more than a little waits before it. Raises EOFError at the end."""
        while self._room is not None and self.state is State.OPEN:
            await asyncio.shield(self._room)
        if self.state is not State.OPEN:
            await self.ended()
            raise EOFError
        self._write(TEXT if isinstance(message, str) else BINARY, _bytes(message))

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> bool:
        """From another thread, one message: see :meth:`Outlet.write_now`; only a server's."""
        if self.state is not State.OPEN:
            return False
        return self._outlet.write_now((head(BINARY, sum(map(len, pieces)), masked=False), *pieces))

    def open_gate(self) -> None:
        """Allow :meth:`send_now`."""
        if self.state is State.OPEN and self._server:
            self._outlet.open()

    def shut_gate(self) -> None:
        """No :meth:`send_now` any more, nor reading by another thread."""
        self.inlet.take_back(closing=True)
        self._outlet.shut()

    def lend(self, sim: SimThread, job: Callable[[], None]) -> None:
        """Have another thread read the socket, if nothing of it is here already; only a server's."""
        descriptor, quiet = self._outlet.other, self._reader.is_idle and not self._paused and not self.inlet.away
        if self.state is State.OPEN and descriptor is not None and quiet and sim.can_watch:
            self.inlet.lend(descriptor, functools.partial(sim.unwatch, descriptor))
            sim.watch(descriptor, job)

    async def close(self, close: Close) -> None:
        """Say ``close`` and wait for the end. Idempotent."""
        self._leaving = True
        self._say(close)
        await self.ended()

    def abort(self) -> None:
        """Cut the connection; nothing more is sent."""
        self._begin_closing()
        self.transport.abort()

    async def ended(self) -> None:
        """Until the transport is closed."""
        await asyncio.shield(self._closed)

    # What the transport does.

    def feed(self, data: bytes) -> None:
        """Bytes that the transport had read before this was its protocol."""
        try:
            self._reader.feed(data)
        except Violation as violation:
            self._fail(violation)
        self._look()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._reader.filled(nbytes)
        except Violation as violation:
            self._fail(violation)
        self._look()

    def eof_received(self) -> None:
        self._begin_closing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._begin_closing()
        self.state = State.CLOSED
        if self._deadline is not None:
            self._deadline.cancel()
        for waiter in (self._arrival, self._room, self._closed):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
        self._answer_ping()

    # What follows from it.

    async def _arrived(self) -> None:
        """Until there is a message. Raises EOFError."""
        self._waits[self] = time.monotonic_ns()
        try:
            if not self._server and self._vigil.pays():
                await self._soon()
            while not self._reader.messages:
                if self.state is State.CLOSED:
                    raise EOFError
                self._arrival = self._loop.create_future()
                await self._arrival
        finally:
            self._arrival = None
            del self._waits[self]

    async def _soon(self) -> None:
        """Read the socket past the loop, for a moment, unless others of the loop may expect something just as soon."""
        await asyncio.sleep(0)  # all else that the loop has to do, while the peer is at work
        recently_ns = time.monotonic_ns() - _RECENT_NS
        alone = not any(since_ns > recently_ns and other is not self for other, since_ns in self._waits.items())
        messages = self._reader.messages
        if alone and not messages and self._vigil.watch(self._pull) > 0 and not messages:
            self._vigil.watch(lambda: self._pull() < 0 or bool(messages))  # the rest of it; not for ever

    def _pull(self) -> int:
        """Take what has come past the loop; how many bytes, -1 if it is the loop's to see what there is."""
        descriptor = self._outlet.own
        if descriptor is None or self._paused or self.state is not State.OPEN or self.transport.is_closing():
            return -1
        buffer = self._reader.get_buffer()
        try:
            count = os.readv(descriptor, (buffer,))
        except BlockingIOError:
            return 0
        except OSError:
            return -1
        finally:
            del buffer  # or what it is lent from could not grow
        if count:
            self.buffer_updated(count)
        return count or -1

    def _home(self, data: bytes) -> None:
        """The socket is this thread's again; ``data`` was read of it."""
        self.feed(data)
        self._read_on()

    def _look(self) -> None:
        """What has come?"""
        reader, arrival = self._reader, self._arrival
        if reader.crowded:
            self._breathe()
        if reader.messages:
            if arrival is not None and not arrival.done():
                arrival.set_result(None)
            if self._max_queue is not None and len(reader.messages) >= self._max_queue:
                self._too_many(self._max_queue)
        if reader.ping is not None:
            self._answer_ping()
        if reader.close is not None:
            self._say(reader.close)
            if self._server:
                self._finish()

    def _too_many(self, most: int) -> None:
        if self._leaving:  # and does not wait for room: the peer's answer is behind what came
            while len(self._reader.messages) > most:
                self._reader.messages.pop()
        elif self.state is State.OPEN and not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def _breathe(self) -> None:
        """Let others have the loop: a flood of small frames would be read on and on."""
        self._reader.crowded = False
        if not self.transport.is_closing():
            self.transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _resume(self) -> None:
        self._paused = False
        self._read_on()

    def _read_on(self) -> None:
        if not self._paused and not self.inlet.away and not self.transport.is_closing():
            self.transport.resume_reading()

    def _answer_ping(self) -> None:
        """Only the newest (RFC 6455, §5.5.3), and none while the peer does not read: memory stays flat."""
        ping, reader = self._reader.ping, self._reader
        if ping is not None and self._room is None and self.state is State.OPEN:
            reader.ping = None
            self._write(PONG, ping)

    def _write(self, first: int, payload: bytes) -> None:
        start = head(first, len(payload), masked=not self._server)
        if not self._server:
            key = os.urandom(4)
            start, payload = start + key, apply_mask(payload, key)
        self._outlet.write((start + payload,) if len(payload) < _JOINED else (start, payload))

    def _say(self, close: Close) -> None:
        """A close frame, if none was sent; the first is what counts."""
        if self.state is State.OPEN:
            self.sent = close
            self._begin_closing()
            self._write(CLOSE, close.payload())
            if self._paused:
                self._resume()

    def _fail(self, violation: Violation) -> None:
        self._say(Close(*violation.args))
        if self._server:
            self._finish()

    def _finish(self) -> None:
        if not self.transport.is_closing():
            self._outlet.finish()

    def _begin_closing(self) -> None:
        if self.state is State.OPEN:
            self.state = State.CLOSING
            self.shut_gate()
            self._deadline = self._loop.call_later(self._close_timeout_s, self.abort)


def _bytes(message: bytes | bytearray | str) -> bytes:
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else bytes(message)
