"""Bytes to messages. What arrives is not trusted, and no array is copied."""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Sequence
from typing import Any, Protocol

import msgpack
import numpy as np

from hudsim.errors import DecodeError
from hudsim.wire.format import (
    ARRAY,
    ARRAY_HEAD,
    CARRIED,
    DEFAULT,
    DTYPE_KEY,
    DTYPES,
    MAX_DIMS,
    SCALAR,
    SHAPE_KEY,
    Array,
    Buffer,
    Limits,
)

__all__ = ["decode", "flat_map"]

_U16, _U32 = (struct.Struct(f">{code}").unpack_from for code in "HI")
_NUMBERS = {
    first + at: (struct.Struct(f">{code}").unpack_from, struct.calcsize(code))
    for first, codes in ((0xCA, "fd"), (0xCC, "BHIQ"), (0xD0, "bhi"), (0xD3, "q"))
    for at, code in enumerate(codes)
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_LENGTHS = {
    first + at: _NUMBERS[number]
    for first, numbers in (
        (0xC4, (0xCC, 0xCD, 0xCE)),
        (0xD9, (0xCC, 0xCD, 0xCE)),
        (0xDC, (0xCD, 0xCE)),
        (0xDE, (0xCD, 0xCE)),
    )
    for at, number in enumerate(numbers)
}
_PLACES = (0xCD, 0xCE, 0xCF)  # a place in shared memory, in place of the data
_MARKERS = {name.encode(): name for name in (ARRAY, SCALAR, "data", "dtype", "shape")}
_MARKED = frozenset({ARRAY, SCALAR})
_MARK = ARRAY_HEAD[1:]
_SHORT = 4096  # bytes
_PLAIN = frozenset({type(None), bool, int, float, str})
_TAILS = {DTYPE_KEY + b"\xa3" + name.encode() + SHAPE_KEY: dtype for name, dtype in DTYPES.items()}
_TAIL = len(next(iter(_TAILS)))


class Shared(Protocol):
    """Memory that the writer of a message shares with its reader."""

    def find(self, place: int, dtype: np.dtype[Any], shape: Sequence[int], size: int) -> Array:
        """The array of ``size`` bytes at ``place``. Raises :class:`~hudsim.errors.DecodeError` if that is none."""
        ...


def decode(data: Buffer, *, copy: bool = False, limits: Limits = DEFAULT, shared: Shared | None = None) -> Any:
    """The message in ``data``.

    Arrays are read-only and of native byte order: views into ``data``, except those whose dtype does not allow
    their place there (not aligned, not native), which are copied. With ``copy`` each is writable and owns its
    memory. A bytearray or memoryview, which its owner may write to, is copied first. An array whose ``data`` is its
    place in ``shared`` is a view there. Raises :class:`DecodeError` for all that is not exactly one message within
    ``limits``.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise DecodeError(f"got {type(data).__name__}, expected bytes")
    size = memoryview(data).nbytes
    if size > limits.max_bytes:
        raise DecodeError(f"got a message of {size} bytes, expected at most {limits.max_bytes}")
    try:
        value, end = _Reader(bytes(data), copy, limits, shared).value(0, 0)
    except (IndexError, struct.error):
        raise DecodeError(f"got a message that breaks off after {size} bytes, expected the whole") from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"got text that is not UTF-8: {error.reason}") from None
    if end != size:
        raise DecodeError(f"got {size - end} bytes after the message, expected none")
    return value


class _Reader:
    """One message being read.

    A method takes the position after the type byte and returns its value and the position after that. A read
    past the end raises IndexError or struct.error.
    """

    __slots__ = ("copy", "data", "left", "limits", "shared", "size")

    def __init__(self, data: bytes, copy: bool, limits: Limits, shared: Shared | None) -> None:
        self.data, self.size, self.copy, self.limits, self.shared = data, len(data), copy, limits, shared
        self.left = limits.max_items

    def value(self, pos: int, depth: int) -> tuple[Any, int]:
        """The value whose type byte is at ``pos``."""
        code = self.data[pos]
        pos += 1
        if code < 0x80:
            return code, pos
        if code >= 0xE0:
            return code - 256, pos
        if code in _CONSTANTS:
            return _CONSTANTS[code], pos
        if code in _NUMBERS:
            unpack, width = _NUMBERS[code]
            return unpack(self.data, pos)[0], pos + width
        if code < 0xC0:
            size = code & (31 if code >= 0xA0 else 15)
        elif code in _LENGTHS:
            unpack, width = _LENGTHS[code]
            size = unpack(self.data, pos)[0]
            pos += width
        else:
            raise DecodeError(f"got the msgpack type 0x{code:02x}, expected plain data and arrays (no extensions)")
        return self.sized(code, pos, size, depth)

    def sized(self, code: int, pos: int, size: int, depth: int) -> tuple[Any, int]:
        if 0xA0 <= code < 0xC0 or 0xD9 <= code < 0xDC:
            return self.piece(pos, size).decode(), pos + size
        if 0xC4 <= code < 0xC7:
            return self.piece(pos, size), pos + size
        if code < 0x90 or code >= 0xDE:
            return self.mapping(pos, size, depth)
        return self.sequence(pos, size, depth)

    def piece(self, pos: int, size: int) -> bytes:
        if size > self.size - pos:
            raise IndexError
        return self.data[pos : pos + size]

    def enter(self, count: int, pos: int, depth: int) -> None:
        """See that ``count`` items may follow and can, before any memory is taken for them."""
        if depth >= self.limits.max_depth:
            raise DecodeError(f"got lists and maps {depth + 1} deep, expected at most {self.limits.max_depth}")
        self.left -= count
        if self.left < 0:
            raise DecodeError(f"got more items than {self.limits.max_items}, expected at most that many")
        if count > self.size - pos:
            raise DecodeError(f"got {self.size - pos} bytes, expected {count} items in them")

    def sequence(self, pos: int, count: int, depth: int) -> tuple[list[Any], int]:
        self.enter(count, pos, depth)
        items = []
        for _ in range(count):
            item, pos = self.value(pos, depth + 1)
            items.append(item)
        return items, pos

    def mapping(self, pos: int, count: int, depth: int) -> tuple[Any, int]:
        if (found := self.usual(pos, count, depth)) is not None:
            return found
        data = self.data
        self.enter(2 * count, pos, depth)
        items: dict[str, Any] = {}
        plain = True
        for _ in range(count):
            code = data[pos]
            if 0xA0 <= code < 0xC0:
                end = pos + 1 + (code & 31)
                key = data[pos + 1 : end].decode()
            else:
                key, end = self.key(pos)
                plain = plain and code >= 0xD9
            code = data[end]
            pos = end + 1
            if code < 0x80:
                items[key] = code
            elif code in _CONSTANTS:
                items[key] = _CONSTANTS[code]
            elif code in _NUMBERS:
                unpack, width = _NUMBERS[code]
                items[key] = unpack(data, pos)[0]
                pos += width
            else:
                items[key], pos = self.value(end, depth + 1)
        if len(items) != count:
            raise DecodeError("got a map that has a key twice")
        if ARRAY in items or SCALAR in items:
            return self.numpy(items), pos
        if not plain:
            raise DecodeError(f"got a map with keys of type bytes ({reprlib.repr(list(items))}), expected str")
        return items, pos

    def usual(self, pos: int, count: int, depth: int) -> tuple[Any, int] | None:
        """An array as everyone writes it, or a flat map at a message's end; None for any other map."""
        if count == 4 and self.data.startswith(_MARK, pos):
            return self.array(pos + len(_MARK))
        if depth != 1 or not 0 < count < 16 or (flat := flat_map(self.data, pos - 1)) is None:
            return None
        self.enter(2 * count, pos, depth)
        return flat, self.size

    def key(self, pos: int) -> tuple[str, int]:
        """A key that is not a short str: a longer one, or the bytes that mark arrays and scalars."""
        code = self.data[pos]
        if 0xD9 <= code < 0xDC or code == 0xC4:
            key, pos = self.value(pos, 0)
            if isinstance(key, str):
                return key, pos
            if key in _MARKERS:
                return _MARKERS[key], pos
            raise DecodeError(f"got the map key {reprlib.repr(key)}, expected str")
        raise DecodeError(f"got a map key of the msgpack type 0x{code:02x}, expected str")

    def array(self, pos: int) -> tuple[Array, int] | None:
        """An array as everyone writes it, by one look at each part; ``pos`` is that of the data's type byte.

        None where anything is unusual: it is then read as a map.
        """
        data = self.data
        code = data[pos]
        place = None
        if code in _PLACES and self.shared is not None:
            unpack, width = _NUMBERS[code]
            place = unpack(data, pos + 1)[0]
            start, size = pos + 1, width
        elif code == 0xC4:
            start, size = pos + 2, data[pos + 1]
        elif code == 0xC5:
            start, size = pos + 3, _U16(data, pos + 1)[0]
        elif code == 0xC6:
            start, size = pos + 5, _U32(data, pos + 1)[0]
        else:
            return None
        end = start + size
        dtype = _TAILS.get(data[end : end + _TAIL])
        if dtype is None or not 0x90 <= data[end + _TAIL] < 0xA0:
            return None
        dims = data[end + _TAIL] & 15
        pos = end + _TAIL + 1
        shape = []
        for _ in range(dims):
            dim = data[pos]
            if dim < 0x80:
                pos += 1
            elif dim == 0xCC:
                dim = data[pos + 1]
                pos += 2
            elif dim == 0xCD:
                dim = data[pos + 1] << 8 | data[pos + 2]
                pos += 3
            elif dim == 0xCE:
                dim = _U32(data, pos + 1)[0]
                pos += 5
            else:
                return None
            shape.append(dim)
        return (self.build(dtype, shape, data, start, size) if place is None else self.found(dtype, shape, place)), pos

    def numpy(self, items: dict[str, Any]) -> Any:
        """The array or scalar that a map stands for."""
        marker = ARRAY if ARRAY in items else SCALAR
        keys = {marker, "data", "dtype", "shape"} if marker == ARRAY else {marker, "data", "dtype"}
        if items.keys() != keys or items[marker] is not True:
            got = f"{reprlib.repr(list(items))}, {marker} being {reprlib.repr(items[marker])}"
            raise DecodeError(f"got a map of {got}, expected {sorted(keys)}, {marker} being True")
        name, data = items["dtype"], items["data"]
        dtype = DTYPES.get(name) if isinstance(name, str) else None
        if dtype is None:
            raise DecodeError(f"got dtype {reprlib.repr(name)}, expected {CARRIED}")
        if marker == SCALAR:
            return _scalar(dtype, data)
        shape = items["shape"]
        placed = type(data) is int and self.shared is not None
        if not (isinstance(data, bytes) or placed) or not isinstance(shape, list):
            got = f"data of type {type(data).__name__}, shape of type {type(shape).__name__}"
            raise DecodeError(f"got an array with {got}, expected bytes and list")
        if len(shape) > MAX_DIMS or any(type(dim) is not int or dim < 0 for dim in shape):
            raise DecodeError(f"got shape {reprlib.repr(shape)}, expected at most {MAX_DIMS} non-negative integers")
        return self.found(dtype, shape, data) if placed else self.build(dtype, shape, data, 0, len(data))

    def found(self, dtype: np.dtype[Any], shape: list[int], place: int) -> Array:
        """The array of that dtype and shape at ``place`` in the shared memory."""
        assert self.shared is not None
        self.see_empty(dtype, shape)
        array = self.shared.find(place, dtype, shape, math.prod(shape) * dtype.itemsize)
        return self.owned(array) if self.copy or not dtype.isnative else array

    def build(self, dtype: np.dtype[Any], shape: list[int], data: bytes, start: int, size: int) -> Array:
        """The array of ``size`` bytes of ``data`` from ``start``, if that is what ``shape`` takes."""
        if math.prod(shape) * dtype.itemsize != size:
            raise DecodeError(f"got an array of {size} bytes, expected {dtype} of shape {reprlib.repr(shape)}")
        self.see_empty(dtype, shape)
        array: Array = np.ndarray(shape, dtype, data, start)
        usable = dtype.itemsize == 1 or (dtype.isnative and array.flags.aligned)
        return array if usable and not self.copy else self.owned(array)

    def see_empty(self, dtype: np.dtype[Any], shape: list[int]) -> None:
        """An empty array costs nothing here, but the first sum over it would."""
        if 0 in shape and math.prod(dim for dim in shape if dim) * dtype.itemsize > self.limits.max_bytes:
            raise DecodeError(f"got an empty array of shape {reprlib.repr(shape)}, expected shorter axes")

    def owned(self, array: Array) -> Array:
        """A copy of native byte order, which is writable if copies were asked for."""
        own: Array = array.astype(array.dtype.type)
        own.flags.writeable = self.copy
        return own


def flat_map(data: bytes, at: int) -> dict[str, Any] | None:
    """The map of at most 15 plain values from ``at`` on that is all the rest of a message; by msgpack's unpacker.

    ``meta`` stands last in an observation, and this takes a fifth of the time. None: it is another, to be read where
    what is wrong with it has its words.
    """
    count = data[at] & 15
    if len(data) - at > _SHORT:
        return None
    try:
        items = msgpack.unpackb(memoryview(data)[at:], max_array_len=0, max_map_len=count)
    except (ValueError, msgpack.UnpackException):
        return None
    if type(items) is not dict or len(items) != count:
        return None
    for key, item in items.items():
        if type(key) is not str or type(item) not in _PLAIN:
            return None
    return items if items.keys().isdisjoint(_MARKED) else None


def _scalar(dtype: np.dtype[Any], value: Any) -> Any:
    native = dtype.type
    bits = 8 * dtype.itemsize
    if dtype.kind == "b":
        fits = isinstance(value, bool)
    elif dtype.kind == "f":
        fits = isinstance(value, float) and not float(np.finfo(native).max) < abs(value) < math.inf
    else:
        low, high = (0, 1 << bits) if dtype.kind == "u" else (-(1 << bits - 1), 1 << bits - 1)
        fits = type(value) is int and low <= value < high
    if not fits:
        raise DecodeError(f"got {reprlib.repr(value)}, expected a scalar of {dtype}")
    return native(value)
