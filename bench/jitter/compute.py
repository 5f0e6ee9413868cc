"""``compute``: arithmetic without end, none of which gives the interpreter's lock up by itself."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["compute"]


def compute() -> NoReturn:
    """Until its process ends."""
    number = 1
    while True:
        number = number * 6364136223846793005 % (1 << 61)
