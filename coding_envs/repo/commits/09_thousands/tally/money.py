"""Amounts of money, as whole cents."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)")


class AmountError(ValueError):
    """What is no amount."""


def parse_amount(words: str) -> int:
    """The cents of an amount such as 12, 12.5, -12.50 or 1,234.50. AmountError for anything else."""
    whole, point, part = words.strip().partition(".")
    if not _WHOLE.fullmatch(whole) or (point and not (part.isdigit() and len(part) <= 2)):
        raise AmountError(f"{words!r} is no amount")
    whole = whole.replace(",", "")
    cents = int(part.ljust(2, "0")) if point else 0
    return int(whole) * 100 + (-cents if whole.startswith("-") else cents)


def format_amount(cents: int) -> str:
    """Cents as an amount with two decimals and commas between thousands: 123450 is 1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02}"
