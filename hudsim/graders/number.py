"""Numbers that can be meant: finite, and no truth value taken for one."""

from __future__ import annotations

import math
import numbers
import reprlib
from typing import Any

from hudsim.errors import UsageError

__all__ = ["finite", "share", "unboxed"]


def unboxed(value: Any) -> Any:
    """A scalar of an array library (numpy's, torch's; shape ``()``) as Python's own; all else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def finite(value: Any) -> float:
    """``value`` as a plain float. Raises :class:`~hudsim.errors.UsageError` for NaN, an infinity, a bool or text."""
    number = unboxed(value)
    if isinstance(number, bool):
        raise UsageError(f"got {number}, expected a number (float() makes a truth 1.0 or 0.0)")
    if not isinstance(number, numbers.Real):
        raise UsageError(f"got {reprlib.repr(value)}, expected a number")
    try:
        out = float(number)
    except OverflowError:
        out = math.inf
    if not math.isfinite(out):
        raise UsageError(f"got {reprlib.repr(value)}, expected a finite number")
    return out


def share(value: Any) -> float:
    """:func:`finite`, and from 0 to 1; a truth is 1.0 or 0.0, as what a measurement is made of."""
    plain = unboxed(value)
    number = float(plain) if isinstance(plain, bool) else finite(plain)
    if not 0.0 <= number <= 1.0:
        raise UsageError(f"got {number!r}, expected a number from 0 to 1")
    return number
