"""``UsualActions``: the frame that an agent sends each tick, made and known by its bytes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hudsim.wire.codec import encode
from hudsim.wire.encoder import int_bytes
from hudsim.wire.ring import LARGE

__all__ = ["UsualActions"]

_INDEX_SIZES = {0xCC: 2, 0xCD: 3, 0xCE: 5}  # msgpack's unsigned integers above 127: first byte -> bytes in all


class UsualActions:
    """``{"actions": array of this dtype and shape, "episode": this token, "obs_index": n}`` in this order.

    Within an episode all of it but the numbers and n is the same from tick to tick, so that it is recognised by
    two comparisons instead of being decoded: a quarter of the time. Any other frame is not known, and to be
    decoded in full; one that is known decodes to the same, and one that is written is what encoding gives.
    """

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], token: str) -> None:
        self._dtype, self._shape, self._token = dtype, shape, token
        self._size = int(np.prod(shape)) * dtype.itemsize
        zeros, ones = (self._example(byte, token) for byte in (0, 1))
        self._head = zeros[: next(i for i, (a, b) in enumerate(zip(zeros, ones, strict=True)) if a != b)]
        self._tail = zeros[len(self._head) + self._size : -1]
        self._start = len(self._head)
        self._end = self._start + self._size
        self._index_at = self._end + len(self._tail)

    @classmethod
    def of(cls, dtype: np.dtype[Any], shape: tuple[int, ...], token: str) -> Self | None:
        """None if no frame of such actions is usual: they are empty, or large."""
        size = int(np.prod(shape)) * dtype.itemsize
        return cls(dtype, shape, token) if 0 < size < LARGE and dtype.str[0] != ">" else None

    def _example(self, byte: int, token: str) -> bytes:
        """A frame whose numbers are ``byte`` all over."""
        numbers = np.full(self._size, byte, np.uint8).view(self._dtype).reshape(self._shape)
        return encode({"actions": numbers, "episode": token, "obs_index": 0})

    def write(self, array: Any, token: str | None, index: int | None) -> bytes | None:
        """The frame of these actions; None: it is another kind of frame."""
        if type(array) is not np.ndarray or array.dtype != self._dtype or array.shape != self._shape:
            return None
        if token != self._token or type(index) is not int or not 0 <= index < 1 << 32:
            return None
        return b"".join((self._head, array.tobytes(), self._tail, int_bytes(index)))

    def match(self, frame: bytes) -> tuple[NDArray[Any], int] | None:
        """The actions (an array of their own) and ``obs_index``; None: another kind of frame."""
        at = self._index_at
        if not frame.startswith(self._head) or not frame.startswith(self._tail, self._end) or at >= len(frame):
            return None
        code, size = frame[at], len(frame) - at
        if code < 0x80:
            index = code if size == 1 else None
        else:
            index = int.from_bytes(frame[at + 1 :]) if _INDEX_SIZES.get(code) == size else None
        if index is None:
            return None
        return np.ndarray(self._shape, self._dtype, frame, self._start).copy(), index
