"""Messages to bytes. Each array is copied once, straight into the frame."""

from __future__ import annotations

import math
import reprlib
import struct
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import msgpack
import numpy as np
from numpy.typing import NDArray

from hudsim.errors import WireError
from hudsim.wire.format import (
    ARRAY,
    ARRAY_HEAD,
    CARRIED,
    DEFAULT,
    DTYPE_KEY,
    DTYPES,
    MAX_DIMS,
    SCALAR,
    SCALAR_HEAD,
    SHAPE_KEY,
    Array,
)
from hudsim.wire.mirror import reorder
from hudsim.wire.ring import LARGE, Page

__all__ = [
    "Piece",
    "array_envelope",
    "encode",
    "encode_pieces",
    "flat_bytes",
    "int_bytes",
    "key_bytes",
    "length_bytes",
    "place_bytes",
]

Piece: TypeAlias = bytes | memoryview

_u16, _u32, _u64 = (struct.Struct(f">B{code}").pack for code in "HIQ")
_i8, _i16, _i32, _i64 = (struct.Struct(f">B{code}").pack for code in "bhiq")
_f64 = struct.Struct(">Bd").pack
_BYTE = tuple(bytes((value,)) for value in range(256))
_SMALL = 4096  # bytes: below it tobytes() is quicker than handing out a buffer
_4GIB = 1 << 32


def encode(message: Any, page: Page | None = None) -> bytes:
    """One frame of ``message``: None, bool, int, float, str, bytes, list, tuple, dict with str keys, numpy arrays
    and scalars, in one another.

    Arrays may have any strides and byte order; the frame holds them in C order, little-endian. What comes back
    is equal, but a tuple is then a list, and an ``np.float64`` (it is a float) a float. Raises :class:`WireError`,
    which names the place, for what is not carried: other types, dtypes and keys, integers beyond 64 bits, more
    depth than the default ``max_depth``.

    With a ``page`` of memory that the reader maps too, arrays of ``LARGE`` bytes and more go there as long as there
    is room, and the frame holds their places.
    """
    out = _parts(message, page)
    return _join_moved(out) if out.moved else b"".join(out)


def encode_pieces(message: Any, page: Page | None = None) -> list[Piece]:
    """The same as pieces that make up the frame: the bytes, and large arrays where they stand.

    Nothing of those is copied, so that the pieces are good until somebody writes to the arrays.
    """
    out = _parts(message, page)
    if out.moved:
        return [_join_moved(out)]
    pieces: list[Piece] = []
    start = 0
    for index in out.large:
        pieces += (b"".join(out[start:index]), memoryview(out[index]).cast("B"))
        start = index + 1
    pieces.append(b"".join(out[start:]))
    return pieces


def _parts(message: Any, page: Page | None) -> _Parts:
    out = _Parts(page)
    try:
        _write(out, message, 0)
    except _NotCarried as error:
        raise WireError(f"cannot send {error.place()}: {error}", place=error.place()) from None
    return out


class _Parts(list[Any]):
    """The parts of a frame; ``large`` are the places of large arrays, ``moved`` of those not in the wire's order."""

    __slots__ = ("large", "moved", "page")

    def __init__(self, page: Page | None) -> None:
        super().__init__()
        self.large: list[int] = []
        self.moved: list[int] = []
        self.page = page


class _NotCarried(Exception):
    """Why a value cannot be sent, and the keys on the way to it, innermost first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.keys: list[Any] = []

    def place(self) -> str:
        return "message" + "".join(f"[{key!r}]" for key in reversed(self.keys))


def _write(out: _Parts, value: Any, depth: int) -> None:
    kind = type(value)
    leaf = _LEAVES.get(kind)
    if leaf is not None:
        out.append(leaf(value))
    elif kind is np.ndarray:
        _write_array(out, value)
    elif kind is dict:
        _write_dict(out, value, depth)
    elif kind is list or kind is tuple:
        _write_list(out, value, depth)
    else:
        _write_other(out, value, depth)


def _write_dict(out: _Parts, value: dict[Any, Any], depth: int) -> None:
    _enter(value, depth)
    if depth and value and (packed := flat_bytes(value)) is not None:
        out.append(packed)
        return
    out.append(length_bytes(len(value), 0x80, 0xDE))
    key = None
    try:
        for key, item in value.items():
            out.append(key_bytes(key))
            leaf = _LEAVES.get(type(item))
            if leaf is not None:
                out.append(leaf(item))
            else:
                _write(out, item, depth + 1)
    except _NotCarried as error:
        error.keys.append(key)
        raise


def flat_bytes(value: dict[Any, Any]) -> bytes | None:
    """A flat map of plain values, as ``meta`` is, by msgpack's own packer in C: the same bytes in a tenth of the time.

    None for any other, and for what that cannot say: it is then told where it stands.
    """
    for key, item in value.items():
        if type(key) is not str or type(item) not in _PLAIN or key in _MARKERS:
            return None
    try:
        packed: bytes = msgpack.packb(value)
    except (OverflowError, ValueError):
        return None
    return packed


def _write_list(out: _Parts, value: list[Any] | tuple[Any, ...], depth: int) -> None:
    _enter(value, depth)
    out.append(length_bytes(len(value), 0x90, 0xDC))
    for index, item in enumerate(value):
        try:
            _write(out, item, depth + 1)
        except _NotCarried as error:
            error.keys.append(index)
            raise


def _enter(value: Any, depth: int) -> None:
    if depth >= DEFAULT.max_depth:
        raise _NotCarried(f"got lists and dicts {depth + 1} deep, expected at most {DEFAULT.max_depth}")
    if len(value) > DEFAULT.max_items:
        raise _NotCarried(f"got {len(value)} items, expected at most {DEFAULT.max_items} (an array holds more)")


def _write_other(out: _Parts, value: Any, depth: int) -> None:
    """Numpy scalars, and subclasses of what is carried."""
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        _write_array(out, np.asarray(value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        out += (_blob(len(raw)), raw)
    elif isinstance(value, str):
        out.append(_text(str.__str__(value)))
    elif isinstance(value, int):
        out.append(int_bytes(int(value)))
    elif isinstance(value, float):
        out.append(_f64(0xCB, value))
    elif isinstance(value, dict):
        _write_dict(out, value, depth)
    elif isinstance(value, (list, tuple)):
        _write_list(out, value, depth)
    elif isinstance(value, np.generic) and value.dtype.str in DTYPES:
        out += (SCALAR_HEAD, _LEAVES[type(value.item())](value.item()), DTYPE_KEY, _text(value.dtype.str))
    else:
        got = value.dtype if isinstance(value, np.generic) else type(value).__name__
        plain = "None, bool, int, float, str, bytes, list, tuple, dict"
        raise _NotCarried(f"got {got}, expected {plain}, or an array or scalar of {CARRIED}")


def _write_array(out: _Parts, array: Array) -> None:
    mark, head, tail, swapped = _envelope(array.dtype, array.shape)
    if out.page is not None and array.nbytes >= LARGE and (place := out.page.place(array)) is not None:
        out += (mark, place_bytes(place), tail)
        return
    body: Array | bytes = array
    if array.nbytes <= _SMALL:
        body = (array if swapped is None else array.astype(swapped)).tobytes()
    elif swapped is not None or not array.flags.c_contiguous:
        out.moved.append(len(out) + 2)
    elif array.nbytes >= LARGE:
        out.large.append(len(out) + 2)
    out += (mark, head, body, tail)


@lru_cache(maxsize=1024)
def _envelope(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[bytes, bytes, bytes, np.dtype[Any] | None]:
    """What marks an array, what stands before its data and what after, and the dtype to swap its bytes to (None: as
    they are).
    """
    if DTYPES.get(dtype.str) != dtype:
        raise _NotCarried(f"got an array of dtype {dtype}, expected {CARRIED}")
    if len(shape) > MAX_DIMS:
        raise _NotCarried(f"got an array of {len(shape)} axes, expected at most {MAX_DIMS}")
    swapped = dtype.newbyteorder("<") if dtype.str[0] == ">" else None
    head = _blob(math.prod(shape) * dtype.itemsize)
    dims = length_bytes(len(shape), 0x90, 0xDC) + b"".join(map(int_bytes, shape))
    return ARRAY_HEAD, head, DTYPE_KEY + _text((swapped or dtype).str) + SHAPE_KEY + dims, swapped


def array_envelope(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[bytes, bytes, bytes]:
    """What marks an array, what stands before its data (:func:`place_bytes` may stand for both), and what after.

    Raises :class:`WireError` for what is not carried.
    """
    try:
        return _envelope(dtype, shape)[:3]
    except _NotCarried as error:
        raise WireError(str(error)) from None


def place_bytes(place: int) -> bytes:
    """A place in shared memory, as it stands where an array's data would: always of the same size."""
    return _u64(0xCF, place)


def _join_moved(parts: _Parts) -> bytes:
    """The frame of parts of which some are not in the wire's order.

    They are put in order in memory that is kept from frame to frame: memory taken and given back for each image
    can cost ten times what moving it does, in page faults.
    """
    size = sum(_room(parts[index].nbytes) for index in parts.moved)
    try:
        scratch = _SCRATCH.pop()
    except IndexError:
        scratch = np.empty(0, np.uint8)
    if scratch.nbytes < size:
        scratch = np.empty(size, np.uint8)
    at = 0
    for index in parts.moved:
        array: Array = parts[index]
        ordered = scratch[at : at + array.nbytes].view(array.dtype.newbyteorder("<")).reshape(array.shape)
        reorder(array, ordered)
        parts[index] = ordered
        at += _room(array.nbytes)
    frame = b"".join(parts)
    if scratch.nbytes <= _KEPT:
        _SCRATCH.append(scratch)
    return frame


_SCRATCH: deque[NDArray[np.uint8]] = deque(maxlen=8)  # one for each thread that encodes at the same time
_KEPT = 16 << 20  # bytes


def _room(size: int) -> int:
    """``size`` and what keeps the next array aligned."""
    return size + 63 & ~63


@lru_cache(maxsize=1024)
def key_bytes(key: Any) -> bytes:
    """A map's key."""
    if not isinstance(key, str):
        raise _NotCarried(f"got a key of type {type(key).__name__}, expected str")
    if key in _MARKERS:
        raise _NotCarried(f"got the key {key!r}, which is kept for numpy arrays and scalars")
    return _text(key)


def _text(value: str) -> bytes:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise _NotCarried(f"got {reprlib.repr(value)}, expected text that UTF-8 can say") from None
    size = len(raw)
    if size < 32:
        return _BYTE[0xA0 | size] + raw
    return (_BYTE[0xD9] + _BYTE[size] if size < 256 else _wide(size, 0xDA)) + raw


def _blob(size: int) -> bytes:
    return _BYTE[0xC4] + _BYTE[size] if size < 256 else _wide(size, 0xC5)


def length_bytes(count: int, fixed: int, code: int) -> bytes:
    """The start of a list or map of ``count`` items; ``fixed`` begins a short one, ``code`` a longer one."""
    return _BYTE[fixed | count] if count < 16 else _wide(count, code)


def _wide(count: int, code: int) -> bytes:
    """A length of 16 bits after ``code``, or of 32 bits after the code that follows it."""
    if count >= _4GIB:
        raise _NotCarried(f"got {count} bytes in one piece, expected less than 4 GiB")
    return _u16(code, count) if count < 1 << 16 else _u32(code + 1, count)


def int_bytes(value: int) -> bytes:
    """A whole number, in the fewest bytes."""
    if value < 0:
        return _negative(value)
    if value < 0x80:
        return _BYTE[value]
    if value < 1 << 8:
        return _BYTE[0xCC] + _BYTE[value]
    if value < 1 << 16:
        return _u16(0xCD, value)
    if value < 1 << 32:
        return _u32(0xCE, value)
    if value < 1 << 64:
        return _u64(0xCF, value)
    raise _NotCarried(f"got an int of {value.bit_length()} bits, expected at most 64")


def _negative(value: int) -> bytes:
    if value >= -0x20:
        return _BYTE[256 + value]
    if value >= -(1 << 7):
        return _i8(0xD0, value)
    if value >= -(1 << 15):
        return _i16(0xD1, value)
    if value >= -(1 << 31):
        return _i32(0xD2, value)
    if value >= -(1 << 63):
        return _i64(0xD3, value)
    raise _NotCarried(f"got an int below -2**63: {value.bit_length()} bits")


_PLAIN = frozenset({type(None), bool, int, float, str})
_MARKERS = frozenset({ARRAY, SCALAR})
_LEAVES: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\xc0",
    bool: lambda value: b"\xc3" if value else b"\xc2",
    float: lambda value: _f64(0xCB, value),
    int: int_bytes,
    str: _text,
}
