"""``arrays``: pytest's ``approx`` of a number, and an array that no number is in."""

from __future__ import annotations

import functools
import sys
from typing import Any

__all__ = ["install"]


def install() -> None:
    """From now on an array without elements, or with objects for elements, is not close to a number."""
    import pytest

    scalar: Any = type(pytest.approx(1.0))
    original, as_array = scalar.__eq__, getattr(sys.modules[scalar.__module__], "_as_numpy_array")  # noqa: B009

    @functools.wraps(original)
    def __eq__(self: Any, actual: Any) -> bool:  # noqa: N807
        array = as_array(actual)
        return False if array is not None and (not array.size or array.dtype.hasobject) else original(self, actual)

    scalar.__eq__ = __eq__
