"""``UsualObservations``: the frame that a world sends each tick, made and known by its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from hudsim.errors import WireError
from hudsim.wire.decoder import flat_map
from hudsim.wire.encoder import Piece, array_envelope, flat_bytes, key_bytes, length_bytes, place_bytes
from hudsim.wire.format import ARRAY, DEFAULT, SCALAR, Array
from hudsim.wire.ring import LARGE, Page, Ring

__all__ = ["Layout", "Usual", "UsualObservations"]

Layout = Iterable[tuple[str, np.dtype[Any], tuple[int, ...]]]
"""Name, dtype and shape of each feature of an observation, in its order."""

_OUTCOME = ("terminated", "truncated", "reward", "success", "meta")
_FALSE = b"\xc2"
_DOUBLE = struct.Struct(">d")
_SUCCESS = {None: b"\xc0", False: _FALSE, True: b"\xc3"}
_SUCCESS_OF = {code[0]: value for value, code in _SUCCESS.items()}
_AFTER_REWARD, _AFTER_SUCCESS = key_bytes("success"), key_bytes("meta")
_PLACE_SIZE = len(place_bytes(0))
_PLACE = place_bytes(0)[0]
_place_at = struct.Struct(">Q").unpack_from
_FLAT = range(0x81, 0x90)  # first bytes of maps that may be read as flat


class Usual(NamedTuple):
    """What such a frame says."""

    data: dict[str, Array]
    reward: float
    success: bool | None
    meta: dict[str, Any]


class _Feature(NamedTuple):
    """``lead`` is all that stands before the data or its place, from the feature before on; ``head`` the data's own."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    lead: bytes
    head: bytes


class UsualObservations:
    """Observations amid an episode: these features in this order, neither end, and a ``meta`` that is flat.

    All of it but numbers is the same from tick to tick. So it is put together from parts that are there already, and
    taken apart by comparing them, in a third of the time that encoding and decoding it take. What is written is what
    :func:`~hudsim.wire.codec.encode_pieces` gives; what is known decodes to the same.
    """

    def __init__(self, layout: Layout) -> None:
        """Raises :class:`~hudsim.errors.WireError` for features that a frame cannot hold."""
        layout = list(layout)
        self._features: list[_Feature] = []
        lead = length_bytes(len(layout) + len(_OUTCOME), 0x80, 0xDE)
        for name, dtype, shape in layout:
            mark, head, tail = array_envelope(dtype, shape)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            self._features.append(_Feature(name, dtype, shape, size, lead + key_bytes(name) + mark, head))
            lead = tail
        ends = b"".join(key_bytes(word) + _FALSE for word in _OUTCOME[:2])
        self._after = lead + ends + key_bytes("reward") + b"\xcb"

    @classmethod
    def of(cls, layout: Layout) -> Self | None:
        """None if no frame of this layout is usual: it is empty somewhere, too large or not of this wire."""
        layout = list(layout)
        names = {name for name, _, _ in layout}
        size = sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for _, dtype, shape in layout)
        plain = all(0 not in shape and dtype.str[0] != ">" for _, dtype, shape in layout)
        if not plain or size > DEFAULT.max_bytes // 2 or not names.isdisjoint((*_OUTCOME, ARRAY, SCALAR)):
            return None
        try:
            return cls(layout)
        except WireError:
            return None

    def write(
        self, data: Mapping[str, Array], reward: float, success: bool | None, meta: dict[str, Any], page: Page | None
    ) -> list[Piece] | None:
        """The frame in pieces, with large arrays in ``page`` if there is room; None: it is another kind of frame."""
        if len(data) != len(self._features) or (told := flat_bytes(meta)) is None:
            return None
        pieces: list[Piece] = []
        parts: list[bytes] = []
        for (_, dtype, shape, size, lead, head), array in zip(self._features, data.values(), strict=True):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            if size < LARGE:
                parts += (lead, head, array.tobytes())
            elif page is not None and (place := page.place(array)) is not None:
                parts += (lead, place_bytes(place))
            elif array.flags.c_contiguous:
                parts += (lead, head)
                pieces += (b"".join(parts), array.data.cast("B"))
                parts.clear()
            else:
                return None
        parts += (self._after, _DOUBLE.pack(reward), _AFTER_REWARD, _SUCCESS[success], _AFTER_SUCCESS, told)
        pieces.append(b"".join(parts))
        return pieces

    def read(self, frame: bytes, ring: Ring | None) -> Usual | None:
        """What ``frame`` says, its arrays read-only; None: it is for the decoder.

        Raises :class:`~hudsim.errors.DecodeError` for a place that is none in ``ring``.
        """
        try:
            return self._read(frame, ring)
        except (IndexError, struct.error, TypeError):  # it breaks off
            return None

    def _read(self, frame: bytes, ring: Ring | None) -> Usual | None:
        found: list[tuple[int, int | None]] = []  # where the data is in the frame, or its place in the ring
        at = 0
        for _, _, _, size, lead, head in self._features:
            if not frame.startswith(lead, at):
                return None
            at += len(lead)
            if ring is not None and frame[at] == _PLACE:
                found.append((at, _place_at(frame, at + 1)[0]))
                at += _PLACE_SIZE
            elif frame.startswith(head, at):
                at += len(head)
                found.append((at, None))
                at += size
            else:
                return None
        if not frame.startswith(self._after, at):
            return None
        at += len(self._after)
        (reward,) = _DOUBLE.unpack_from(frame, at)
        at += _DOUBLE.size
        if not frame.startswith(_AFTER_REWARD, at):
            return None
        at += len(_AFTER_REWARD)
        code = frame[at]
        if code not in _SUCCESS_OF or not frame.startswith(_AFTER_SUCCESS, at + 1):
            return None
        at += 1 + len(_AFTER_SUCCESS)
        meta = flat_map(frame, at) if frame[at] in _FLAT else None
        if meta is None or "result" in meta:
            return None
        # Last: a page is given back with the view of it, so that nothing may be looked at twice.
        data: dict[str, Array] = {}
        for (name, dtype, shape, size, _, _), (start, place) in zip(self._features, found, strict=True):
            if place is None:
                data[name] = _array(frame, start, dtype, shape)
            else:
                assert ring is not None
                data[name] = ring.find(place, dtype, shape, size)
        return Usual(data, reward, _SUCCESS_OF[code], meta)


def _array(frame: bytes, at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array: Array = np.ndarray(shape, dtype, frame, at)
    if not array.flags.aligned:
        array = array.copy()
        array.flags.writeable = False
    return array
