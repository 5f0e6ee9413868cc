"""Limits as arrays: one lower and one upper bound for each number of a feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from hudsim.contract.arrays import Array

__all__ = ["bound_array", "bounds"]


def bound_array(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], unbounded: Any) -> Array:
    """``value`` (a number, None or a nested list of them) as an array [*shape] of ``dtype``.

    None becomes ``unbounded``. The cast to ``dtype`` is the point: an action of float32(2.8973) lies within a
    limit written 2.8973 although it is the larger number. Raises ``ValueError`` in words that say got and expected.
    """
    given = np.array(value, dtype=object)
    numbers = [unbounded if item is None else item for item in given.ravel().tolist()]
    if any(isinstance(item, list) for item in numbers):
        raise ValueError("rows of different lengths")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        for item in numbers:
            if item != int(item):
                raise ValueError(f"{item!r} for {dtype}, which holds whole numbers only")
            if not info.min <= item <= info.max:
                raise ValueError(f"{item!r}, which does not fit {dtype}")
        # Through int, never float: an int64 limit above 2^53 stays exact.
        numbers = [int(item) for item in numbers]
    with np.errstate(over="ignore"):  # 1e300 as float32 is inf: no bound at all
        array = np.array(numbers, dtype=dtype).reshape(given.shape)
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise ValueError(f"shape {list(given.shape)} for values of shape {list(shape)}") from None


def bounds(minimum: Any, maximum: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """(lowest, highest), each [*shape] of ``dtype``; a side without a bound is the dtype's own end.

    Raises ``ValueError`` if one does not broadcast to ``shape`` or does not fit ``dtype``.
    """
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends: tuple[Any, Any] = (info.min, info.max)
    else:
        ends = (-np.inf, np.inf)
    return bound_array(minimum, shape, dtype, ends[0]), bound_array(maximum, shape, dtype, ends[1])
