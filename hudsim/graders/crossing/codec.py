"""``Encoder``, ``Decoder``: one message of plain data, with what is shared in it and what is no data by reference.

A value is a tag and what follows it; sizes are big-endian. Every container and object has the next number of the
message as it begins, so that a later one can refer to it. Nothing is ever looked up by a received name here except in
the tables of :mod:`boxes` and :mod:`values`: what is received is built, never run.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hudsim.graders.crossing.boxes import BOXES, box_of
from hudsim.graders.crossing.errors import CannotCross
from hudsim.graders.crossing.values import OF_ANY, PLAIN, REBUILD, parts_of

__all__ = ["MOST_DEPTH", "Decoder", "Encoder", "GarbledError"]

MOST_DEPTH = 150
"""Of data in data."""

_INT = struct.Struct(">q")
_FLOAT = struct.Struct(">d")
_SIZE = struct.Struct(">I")
_MANY = 16  # from which on a row of numbers is worth packing
_SINGLES: dict[Any, bytes] = {None: b"N", True: b"T", False: b"F", NotImplemented: b"!", Ellipsis: b"."}


class GarbledError(Exception):
    """Bytes that are no message."""


class Encoder:
    """Makes one message of many values.

    other
        Called with this encoder and an object that is no data: writes it, or raises :class:`CannotCross`.
    alias
        Given a container's id, the number by which both sides know it. None: they do not.
    """

    def __init__(
        self, other: Callable[[Encoder, Any], None], alias: Callable[[int], int | None] = lambda _: None
    ) -> None:
        self.out: list[bytes] = []
        self.boxes: list[Any] = []
        """The mutable containers of the message, outer before inner."""
        self.keep: list[Any] = []
        """What must live while the message is made, for its ids are used."""
        self.described: list[int] = []
        """The objects that this message says all about."""
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()
        self._depth = 0
        self._other = other
        self._alias = alias

    def finish(self) -> bytes:
        """The message."""
        return b"".join(self.out)

    def value(self, value: Any) -> None:
        """Raises :class:`CannotCross`."""
        kind = type(value)
        write = _WRITE.get(kind)
        if write is not None:
            write(self.out, value)
            return
        number = self._numbers.get(id(value))
        if number is not None:
            if number in self._open:
                raise CannotCross("cycle", f"got a {kind.__name__} that contains itself")
            self.out.append(b"r" + _SIZE.pack(number))
            return
        if self._depth >= MOST_DEPTH:
            raise CannotCross("deep", f"got data nested more than {MOST_DEPTH} deep")
        self._depth += 1
        try:
            self._compound(kind, value)
        finally:
            self._depth -= 1

    def _compound(self, kind: type, value: Any) -> None:
        if kind is tuple or kind is frozenset:
            number = self._begin(value)
            self.out.append(b"t" if kind is tuple else b"z")
            self._row(value)
            self._open.discard(number)
            return
        place = box_of(kind)
        if place is not None:
            self._box(place, value)
            return
        number = self._begin(value)
        parts = parts_of(value)
        if parts is None:
            self._other(self, value)
        else:
            self.keep.append(parts)
            self.out.append(b"v")
            _text(self.out, parts[0])
            self._row(parts[1])
        self._open.discard(number)

    def _begin(self, value: Any) -> int:
        number = self._numbers[id(value)] = len(self._numbers)
        self._open.add(number)
        return number

    def _box(self, place: int, value: Any) -> None:
        number = self._numbers[id(value)] = len(self._numbers)
        known = self._alias(id(value))
        if known is not None:
            self.out.append(b"a" + _INT.pack(known))
            return
        box = BOXES[place]
        self.out.append(b"b" + bytes([place]))
        if box.argument is not None:
            self._open.add(number)
            argument = box.argument(value)
            self.keep.append(argument)
            self.value(argument)
            self._open.discard(number)
        self.boxes.append(value)
        contents = box.contents(value)
        self.keep.append(contents)
        self._row(contents)

    def _row(self, values: Any) -> None:
        size = len(values)
        if size >= _MANY and (packed := _packed(values)) is not None:
            self.out.append(packed)
            return
        self.out.append(b"-" + _SIZE.pack(size))
        for value in values:
            self.value(value)


def _packed(values: Any) -> bytes | None:
    kinds = set(map(type, values))
    if kinds == {float}:
        return b"d" + _SIZE.pack(len(values)) + struct.pack(f">{len(values)}d", *values)
    if kinds == {int}:
        try:
            return b"q" + _SIZE.pack(len(values)) + struct.pack(f">{len(values)}q", *values)
        except struct.error:
            return None
    return None


def _int(out: list[bytes], value: int) -> None:
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        out.append(b"i" + _INT.pack(value))
    else:
        data = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        out.append(b"I" + _SIZE.pack(len(data)) + data)


def _text(out: list[bytes], value: str) -> None:
    data = value.encode("utf-8", "surrogatepass")
    out.append(b"s" + _SIZE.pack(len(data)) + data)


_WRITE: dict[type, Callable[[list[bytes], Any], None]] = {
    int: _int,
    str: _text,
    float: lambda out, value: out.append(b"f" + _FLOAT.pack(value)),
    bytes: lambda out, value: out.append(b"y" + _SIZE.pack(len(value)) + value),
    **{
        type(single): lambda out, value: out.append(_SINGLES[value])
        for single in (None, True, NotImplemented, Ellipsis)
    },
}


_UNFINISHED = object()
_A, _B, _T, _V, _Z = b"abtvz"


def _plain(name: str, parts: Sequence[Any]) -> Sequence[Any]:
    if name not in OF_ANY and not all(type(part) in PLAIN for part in parts):
        raise TypeError(f"got a {name} made of what is no plain data")
    return parts


def _single(single: Any, _: Decoder) -> Any:
    return single


def _none(_: int) -> Any:
    raise KeyError


class Decoder:
    """Reads a message.

    other
        Called with this decoder and a tag that is none of this file's: reads the object.
    aliased
        The container of a number. Raises KeyError.

    Everything raises :class:`GarbledError` for what is no message. What was sent well but cannot be built here (an
    unhashable key) is ``problem`` afterwards; the rest of the message is read all the same.
    """

    def __init__(
        self,
        data: bytes,
        other: Callable[[Decoder, int], Any],
        aliased: Callable[[int], Any] = _none,
    ) -> None:
        self.boxes: list[Any] = []
        """The mutable containers of the message, outer before inner."""
        self.contents: list[Any] = []
        """What each of them held when it arrived."""
        self.problem: BaseException | None = None
        self._data = data
        self._at = 0
        self._numbered: list[Any] = []
        self._depth = 0
        self._other = other
        self._aliased = aliased

    def end(self) -> None:
        """The message must be over."""
        if self._at != len(self._data):
            raise GarbledError(f"got {len(self._data) - self._at} bytes after the message")

    def value(self) -> Any:
        data, at = self._data, self._at
        if at >= len(data):
            raise GarbledError("got the end of the message, expected a value")
        tag = data[at]
        self._at = at + 1
        read = self._READ.get(tag)
        if read is not None:
            return read(self)
        if self._depth > MOST_DEPTH:
            raise GarbledError("got data nested too deep")
        self._depth += 1
        try:
            if tag == _B:
                return self._box()
            number = len(self._numbered)
            self._numbered.append(_UNFINISHED)
            value = self._whole(tag)
            self._numbered[number] = value
            return value
        finally:
            self._depth -= 1

    def take(self, size: int) -> bytes:
        """The next bytes."""
        at = self._at
        if size > len(self._data) - at:
            raise GarbledError(f"got {len(self._data) - at} bytes, expected {size}")
        self._at = at + size
        return self._data[at : at + size]

    def number(self) -> int:
        """The next eight bytes."""
        return int(_INT.unpack(self.take(8))[0])

    def attempt(self, build: Callable[[], Any]) -> Any:
        """What it makes, or None and a problem."""
        try:
            return build()
        except GarbledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest of the message is read
            self.problem = self.problem or error
        return None

    def _whole(self, tag: int) -> Any:
        if tag == _T:
            return tuple(self._row())
        if tag == _Z:
            row = self._row()
            return self.attempt(lambda: frozenset(row))
        if tag == _V:
            name = self.value()
            build = REBUILD.get(name) if type(name) is str else None
            if build is None:
                raise GarbledError("got a value of no known kind")
            row = self._row()
            return self.attempt(lambda: build(*_plain(name, row)))
        if tag == _A:
            try:
                return self._aliased(self.number())
            except KeyError:
                raise GarbledError("got a container that is not shared") from None
        return self._other(self, tag)

    def _box(self) -> Any:
        number = len(self._numbered)
        self._numbered.append(_UNFINISHED)
        place = self.take(1)[0]
        if place >= len(BOXES):
            raise GarbledError("got a container of no known kind")
        box = BOXES[place]
        argument = self.value() if box.argument is not None else None
        made = self.attempt(lambda: box.new(argument))
        self._numbered[number] = made
        here = len(self.boxes)
        self.boxes.append(made)
        self.contents.append(None)
        row = self._row()
        if made is not None:
            self.attempt(lambda: box.refill(made, row))
            self.contents[here] = box.contents(made)
        return made

    def _row(self) -> Sequence[Any]:
        mark = self.take(1)
        (size,) = _SIZE.unpack(self.take(4))
        if mark == b"-":
            if size > len(self._data) - self._at:
                raise GarbledError(f"got {size} values in {len(self._data) - self._at} bytes")
            return [self.value() for _ in range(size)]
        if mark in {b"q", b"d"}:
            return struct.unpack(f">{size}{mark.decode()}", self.take(8 * size))
        raise GarbledError("got a row of no known kind")

    def _referred(self) -> Any:
        (number,) = _SIZE.unpack(self.take(4))
        if number >= len(self._numbered) or self._numbered[number] is _UNFINISHED:
            raise GarbledError("got a reference to what is not there")
        return self._numbered[number]

    def _sized(self) -> bytes:
        return self.take(_SIZE.unpack(self.take(4))[0])

    def _text(self) -> str:
        try:
            return self._sized().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise GarbledError("got text that is none") from None

    _READ: ClassVar[dict[int, Callable[[Decoder], Any]]] = {
        ord("i"): number,
        ord("I"): lambda self: int.from_bytes(self._sized(), "big", signed=True),
        ord("f"): lambda self: _FLOAT.unpack(self.take(8))[0],
        ord("s"): _text,
        ord("y"): _sized,
        ord("r"): _referred,
        **{mark[0]: functools.partial(_single, single) for single, mark in _SINGLES.items()},
    }
