"""Numbers that can be meant: finite, and no truth value taken for one."""

from __future__ import annotations

import math
import numbers
from typing import Any

from hudsim.errors import UsageError
from hudsim.given import shown

__all__ = ["LARGEST", "finite", "real", "share", "unboxed"]

LARGEST = 1e9
"""How far from 0 a reward, or the weight of one, may be.

Groups of rewards are summed, squared and divided by their spread. Up to here that is exact to six digits and cannot
overflow; what is larger is a mistake of its template, not something that a learner could use.
"""


def unboxed(value: Any) -> Any:
    """A scalar of an array library (numpy's, torch's; shape ``()``) as Python's own; all else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def real(value: Any) -> float:
    """``value`` as a plain float, be it NaN or infinite, as a whole number beyond all floats is.

    Raises :class:`~hudsim.errors.UsageError` for a bool or text.
    """
    number = unboxed(value)
    if isinstance(number, bool):
        raise UsageError(f"got {number}, expected a number (float() makes a truth 1.0 or 0.0)")
    if not isinstance(number, numbers.Real):
        raise UsageError(f"got {shown(value)}, expected a number")
    try:
        return float(number)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def finite(value: Any) -> float:
    """``value`` as a plain float, at most :data:`LARGEST` away from 0.

    Raises :class:`~hudsim.errors.UsageError` for NaN, an infinity, what is larger, a bool or text.
    """
    number = real(value)
    if not math.isfinite(number):
        raise UsageError(f"got {shown(value)}, expected a finite number")
    if abs(number) > LARGEST:
        raise UsageError(f"got {shown(value)}, expected a number from -{LARGEST:g} to {LARGEST:g}")
    return number


def share(value: Any) -> float:
    """:func:`finite`, and from 0 to 1; a truth is 1.0 or 0.0, as what a measurement is made of."""
    plain = unboxed(value)
    number = float(plain) if isinstance(plain, bool) else finite(plain)
    if not 0.0 <= number <= 1.0:
        raise UsageError(f"got {number!r}, expected a number from 0 to 1")
    return number
