"""Arrays into C order; mirrored images quickly."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from hudsim.wire.format import Array

__all__ = ["reorder"]


def reorder(array: Array, ordered: Array) -> None:
    """Copy ``array`` to ``ordered``, which is of its shape, in C order, and may be of the other byte order.

    Numpy moves an image mirrored in its columns or channels byte by byte, at 80 times the cost of a plain copy;
    OpenCV needs twice that cost.
    """
    mirror = _mirror(array.shape, array.strides, array.dtype)
    if mirror is None or (cv2 := _opencv()) is None:
        np.copyto(ordered, array)
        return
    image: Any = array[mirror.plain].view(mirror.dtype)
    target: Any = ordered.view(mirror.dtype).reshape(image.shape)
    if mirror.flip is None:
        cv2.cvtColor(image, cv2.COLOR_BGR2RGB, target)
        return
    if mirror.swap:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    cv2.flip(image, mirror.flip, target)


class _Mirror(NamedTuple):
    """How OpenCV makes a plain image of a mirrored one."""

    plain: tuple[slice | int, ...]  # what undoes the mirroring, and drops a lone channel
    dtype: str  # one of the same size that OpenCV takes
    swap: bool  # reverse the three channels
    flip: int | None  # OpenCV's code: 0 rows, 1 columns, -1 both


@lru_cache(maxsize=256)
def _mirror(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> _Mirror | None:
    """None for what is not an image, not mirrored (rows alone are numpy's to move) or beyond OpenCV."""
    flips = [stride < 0 and length > 1 for stride, length in zip(strides, shape, strict=True)]
    if len(shape) not in {2, 3} or not any(flips[1:]) or shape[2:] > (4,) or not dtype.isnative:
        return None
    rows, columns, swap = (*flips, False)[:3]
    size = dtype.itemsize
    if swap and (shape[2] != 3 or size == 8):
        return None
    plain: tuple[slice | int, ...] = tuple(slice(None, None, -1 if flip else 1) for flip in flips)
    if shape[2:] == (1,):
        plain = (*plain[:2], 0)
    flip = -1 if rows and columns else 1 if columns else 0 if rows else None
    return _Mirror(plain, f"u{size}" if size < 4 else f"f{size}", swap, flip)


@cache
def _opencv() -> Any:
    """OpenCV, loaded with the first mirrored image; None where a shared library that it needs is missing."""
    try:
        import cv2
    except ImportError:
        return None
    return cv2
