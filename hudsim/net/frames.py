"""``FrameReader`` and ``head``: WebSocket frames (RFC 6455, §5) from and to bytes, without I/O."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from io import BytesIO

try:
    from websockets.speedups import apply_mask
except ImportError:  # no wheel for this platform: the same in Python
    from websockets.utils import apply_mask

__all__ = ["BINARY", "CLOSE", "PONG", "TEXT", "Close", "FrameReader", "Violation", "apply_mask", "head", "sole"]

TEXT, BINARY, CLOSE, PING, PONG = 0x81, 0x82, 0x88, 0x89, 0x8A
"""First bytes of whole frames: the final bit and the opcode."""

_FINAL, _OPCODE, _CONTROL, _CONTINUATION = 0x80, 0x0F, 0x08, 0x00
_MASKED, _SIZE = 0x80, 0x7F
_MOST_CONTROL = 125
_FIRST_BYTES = frozenset(final | opcode for final in (0, _FINAL) for opcode in (0, 1, 2)) | {CLOSE, PING, PONG}

_U16, _U64 = struct.Struct(">H").unpack_from, struct.Struct(">Q").unpack_from
_HEAD16, _HEAD64 = struct.Struct(">BBH").pack, struct.Struct(">BBQ").pack

_SCRATCH = 16 << 10
_AT_ONCE = 1 << 20  # a larger payload's memory is taken as it comes, not as it is promised

_PROTOCOL_ERROR, _NO_CODE, _NO_TEXT, _TOO_LARGE = 1002, 1005, 1007, 1009
_CODES = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})  # and 3000 to 4999 (§7.4)


@dataclass(frozen=True)
class Close:
    """What a close frame says. ``code`` 1005: it had none."""

    code: int
    reason: str = ""

    @classmethod
    def parse(cls, payload: bytes) -> Close:
        """Raises :class:`Violation` for what no close frame may hold."""
        if not payload:
            return cls(_NO_CODE)
        code = int.from_bytes(payload[:2])
        if len(payload) < 2 or not (code in _CODES or 3000 <= code < 5000):
            raise Violation(_PROTOCOL_ERROR, f"got the close code {code}")
        return cls(code, _text(payload[2:]))

    def payload(self) -> bytes:
        """As it is sent."""
        return b"" if self.code == _NO_CODE else self.code.to_bytes(2) + self.reason.encode()


class Violation(Exception):
    """The peer broke the protocol; ``args`` are the close code that tells it so, and the reason."""


def head(first: int, size: int, *, masked: bool) -> bytes:
    """The header of a frame of ``size`` bytes, up to the masking key; ``first`` is its first byte."""
    mask = _MASKED if masked else 0
    if size <= _MOST_CONTROL:
        return bytes((first, mask | size))
    return _HEAD16(first, mask | 126, size) if size < 1 << 16 else _HEAD64(first, mask | 127, size)


def sole(data: bytes) -> bytes | None:
    """The payload of one whole masked binary frame below 64 KiB; None if ``data`` is anything else, or more."""
    if len(data) < 6 or data[0] != BINARY or not data[1] & _MASKED:
        return None
    size, start = data[1] & _SIZE, 2
    if size == 127:
        return None
    if size == 126 and len(data) >= 8:
        (size,), start = _U16(data, 2), 4
    if len(data) != start + 4 + size:
        return None
    return apply_mask(data[start + 4 :], data[start : start + 4])


class FrameReader:
    """Whole messages out of one direction of a connection.

    :meth:`get_buffer` says where the next bytes belong and :meth:`filled` that they are there: a large payload is
    read to where it stays, which is the message.

    masked
        Whether the peer must mask its frames (a client's) or must not (a server's).
    max_bytes
        A larger message, whole or in fragments, is a violation (1009), before memory is taken for it.
    messages
        What has come and waits for :meth:`take`, oldest first.
    ping
        The payload of the newest ping, None once the reader's owner has answered it.
    close
        The peer's close frame; after it, or after a violation, all that comes is dropped.
    crowded
        Whether the last bytes filled all the room with small frames, so that there are more to come.
    """

    def __init__(self, *, masked: bool, max_bytes: int) -> None:
        self.messages: deque[bytes | str | _Body] = deque()
        self.ping: bytes | None = None
        self.close: Close | None = None
        self.crowded = False
        self._mask = _MASKED if masked else 0
        self._max_bytes = max_bytes
        self._scratch = bytearray(_SCRATCH)
        self._room = memoryview(self._scratch)
        self._end = 0
        self._body: _Body | None = None
        self._fragments: bytearray | None = None
        self._kind = 0
        self._deaf = False

    @property
    def is_idle(self) -> bool:
        """Whether all that has come has been taken."""
        busy = self._end or self._body or self.messages or self.ping is not None or self.close is not None
        return not busy and self._fragments is None

    def get_buffer(self) -> memoryview:
        """Where the next bytes from the peer go; never empty."""
        if self._body is not None:
            return self._body.room()
        return self._room[self._end :] if self._end else self._room

    def filled(self, count: int) -> None:
        """So many bytes are in the buffer that was got last. Raises :class:`Violation`; what came before it is kept."""
        try:
            if self._deaf:
                return
            body = self._body
            if body is None:
                self._parse(self._end + count)
            elif body.add(count):
                self._body = None
                self._add_body(body)
        except Violation:
            self._deaf, self._body, self._end = True, None, 0
            raise

    def take(self) -> bytes | str:
        """The oldest message; there must be one. Not while the buffer that was got last is lent to anybody."""
        message = self.messages.popleft()
        return message.whole() if isinstance(message, _Body) else message

    def feed(self, data: bytes) -> None:
        """:meth:`get_buffer` and :meth:`filled` for bytes that are somewhere else."""
        rest = memoryview(data)
        while rest:
            room = self.get_buffer()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            del room  # or what it is lent from could not grow
            self.filled(count)
            rest = rest[count:]

    def _parse(self, end: int) -> None:
        """Take every whole frame out of the scratch buffer; what is left begins it, or is a body's beginning."""
        scratch, at = self._scratch, 0
        while end - at >= 2 and not self._deaf:
            first, second = scratch[at], scratch[at + 1]
            size, start = second & _SIZE, at + 2
            self._check(first, second)
            if size > _MOST_CONTROL:
                unpack, start = (_U16, at + 4) if size == 126 else (_U64, at + 10)
                if end < start:
                    break
                (size,) = unpack(scratch, at + 2)
            self._check_size(first, size)
            key = None
            if self._mask:
                key, start = bytes(scratch[start : start + 4]), start + 4
            stop = start + size
            if end < stop:
                if end >= start and stop - at > _SCRATCH:
                    self._body = _Body(first, key, size, self._room[start:end])
                    at = end
                break
            payload = self._room[start:stop]
            at = stop
            self._add(first, apply_mask(payload, key) if key else payload.tobytes())
        if self._deaf:
            at = end
        self._end = left = end - at
        self.crowded = end == _SCRATCH and self._body is None
        if at and left:
            self._room[:left] = self._room[at:end]

    def _check(self, first: int, second: int) -> None:
        if first not in _FIRST_BYTES:
            raise Violation(_PROTOCOL_ERROR, f"got a frame that begins with 0x{first:02x}")
        if second & _MASKED != self._mask:
            raise Violation(_PROTOCOL_ERROR, "got a masked frame" if second & _MASKED else "got a frame without a mask")
        if first & _CONTROL:
            if second & _SIZE > _MOST_CONTROL:
                raise Violation(_PROTOCOL_ERROR, "got a control frame over 125 bytes")
        elif (first & _OPCODE == _CONTINUATION) != (self._fragments is not None):
            what = "a new message within another" if self._fragments is not None else "the rest of no message"
            raise Violation(_PROTOCOL_ERROR, f"got {what}")

    def _check_size(self, first: int, size: int) -> None:
        size += len(self._fragments or b"")
        if size > self._max_bytes and not first & _CONTROL:
            raise Violation(_TOO_LARGE, f"got {size} bytes, expected at most {self._max_bytes}")

    def _add(self, first: int, payload: bytes) -> None:
        if first == BINARY:
            self.messages.append(payload)
        elif first == TEXT:
            self.messages.append(_text(payload))
        elif first == PING:
            self.ping = payload
        elif first == CLOSE:
            self.close = Close.parse(payload)
            self._deaf = True
        elif first != PONG:
            self._gather(first, payload)

    def _add_body(self, body: _Body) -> None:
        if body.first == BINARY and body.key is None:
            self.messages.append(body)  # a copy is saved by waiting until nobody fills it any more
        else:
            self._add(body.first, apply_mask(body.view, body.key) if body.key else bytes(body.view))

    def _gather(self, first: int, payload: bytes) -> None:
        """A fragment. One buffer for all of them: a list of a million of one byte would weigh 40 times as much."""
        if self._fragments is None:
            self._fragments, self._kind = bytearray(), first | _FINAL
        self._fragments += payload
        if first & _FINAL:
            whole, self._fragments = bytes(self._fragments), None
            self._add(self._kind, whole)


class _Body:
    """A large payload on its way: the memory of the ``bytes`` that it becomes, filled from outside.

    ``BytesIO`` lends the memory of the ``bytes`` object that it keeps (``getbuffer``), and gives away the object
    itself (``getvalue``) while that is lent to nobody.
    """

    def __init__(self, first: int, key: bytes | None, size: int, beginning: memoryview) -> None:
        self.first = first
        self.key = key
        self.view = memoryview(b"")
        self._size = size
        self._at = len(beginning)
        self._file = BytesIO()
        self._grow(_AT_ONCE)
        self.view[: self._at] = beginning

    def room(self) -> memoryview:
        if self._at == len(self.view):
            self._grow(2 * self._at)
        return self.view[self._at :]

    def add(self, count: int) -> bool:
        """Whether it is whole now."""
        self._at += count
        return self._at == self._size

    def whole(self) -> bytes:
        """Without a copy. Once."""
        self.view.release()
        return self._file.getvalue()

    def _grow(self, size: int) -> None:
        self.view.release()
        self._file.seek(min(size, self._size) - 1)
        self._file.write(b"\0")
        self.view = self._file.getbuffer()


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise Violation(_NO_TEXT, f"got a text that is not UTF-8 at byte {error.start}") from None
