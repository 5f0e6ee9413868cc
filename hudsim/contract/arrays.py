"""One array against a dtype: conversion that changes no value, and finiteness in a fraction of a microsecond."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudsim.errors import ContractError

__all__ = ["Array", "all_finite", "as_array", "cast", "describe", "place"]

Array = NDArray[Any]

_FAMILY = {"b": "bool", "i": "integer", "u": "integer", "f": "float"}
_FLOAT32_EXACT = 2**24
"""Up to here float32 holds every whole number (24 bits of significand)."""
_SMALL = 64
"""Numbers up to which Python's own sum is the quicker way to look at each."""


def describe(array: Array) -> str:
    """``float32[8]``."""
    return f"{array.dtype}{list(array.shape)}"


def place(index: Sequence[Any], names: Sequence[str] | None) -> str:
    """Where in an array: ``[3] (joint4)``; nothing for a 0-d one."""
    if not len(index):
        return ""
    named = f" ({names[int(index[-1])]})" if names else ""
    return f" at {[int(i) for i in index]}{named}"


def as_array(name: str, value: Any) -> Array:
    """``value`` as a plain array of bools, integers or floats; other kinds are refused."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors that live on a GPU
        raise ContractError(name, got=f"{reprlib.repr(value)} ({error})", expected="an array of numbers") from None
    if array.dtype.kind not in _FAMILY:
        got = f"an array of {array.dtype}" if isinstance(value, np.ndarray) else reprlib.repr(value)
        raise ContractError(name, got=got, expected="numbers")
    return array


def all_finite(array: Array) -> bool:
    """Whether no element is an infinity or NaN; exact, and without numpy's warnings."""
    if array.size <= _SMALL:
        # Python's sum of a small list is several times faster than isfinite().all(), and NaN and infinities
        # survive it. It may overflow (1e308 twice), so only a finite sum settles the matter.
        total = sum(array.ravel().tolist()) if array.ndim != 1 else sum(array.tolist())
        if math.isfinite(total):
            return True
    return bool(np.isfinite(array).all())


def cast(name: str, array: Array, dtype: np.dtype[Any], *, whole: bool = False, lenient: bool = False) -> Array:
    """``array`` as ``dtype``, without changing a value by more than the dtype's own rounding.

    Within a kind (bool; integers; floats) it is cast; an integer that does not fit is refused, a float that does
    not becomes an infinity, for the caller to find. ``whole``: integers may become floats, if exactly. ``lenient``:
    floats may become integers or bools, if exactly (whole, and at most 2^24 in size).
    """
    if array.dtype == dtype:
        return array.astype(dtype, copy=False)
    have, want = _FAMILY[array.dtype.kind], _FAMILY[dtype.kind]
    if have == want == "float":
        with np.errstate(over="ignore", under="ignore"):
            return array.astype(dtype)
    if have == want:
        _refuse_outside(name, array, np.iinfo(dtype).min, np.iinfo(dtype).max, f"values that fit {dtype}")
        return array.astype(dtype)
    if whole and (have, want) == ("integer", "float"):
        exact = 2 ** (np.finfo(dtype).nmant + 1)
        _refuse_outside(name, array, -exact, exact, f"whole numbers that {dtype} holds exactly, up to {exact}")
        return array.astype(dtype)
    if lenient and want != "float":
        return _whole(name, array, dtype)
    hint = "scale to 0…255 and cast" if have == "float" and dtype == np.uint8 else ""
    raise ContractError(name, got=describe(array), expected=f"{dtype} (or another {want} dtype)", hint=hint)


def _whole(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """Floats of a peer that has no integers, as integers or bools, if that is what they are."""
    bad = ~np.isfinite(array) | (array != np.rint(array)) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    if bad.any():
        at = np.argwhere(bad)[0]
        raise ContractError(name, got=f"{array[tuple(at)]}{place(at, None)}", expected=f"a whole number ({dtype})")
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    low, high = max(low, -_FLOAT32_EXACT), min(high, _FLOAT32_EXACT)
    _refuse_outside(name, array, low, high, f"whole numbers from {low} to {high}")
    return array.astype(dtype)


def _refuse_outside(name: str, array: Array, low: int, high: int, expected: str) -> None:
    """By the ends, as Python's numbers, which compare exactly whatever the two dtypes."""
    if array.size == 0:
        return
    for end in (array.min().item(), array.max().item()):
        if not low <= end <= high:
            raise ContractError(name, got=f"{end}", expected=expected)
