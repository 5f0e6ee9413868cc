"""Amounts of money, as whole cents."""

from __future__ import annotations


class AmountError(ValueError):
    """What is no amount."""


def parse_amount(words: str) -> int:
    """The cents of an amount such as 12, 12.5 or -12.50. AmountError for anything else."""
    whole, point, part = words.strip().partition(".")
    if not whole.removeprefix("-").isdigit() or (point and not (part.isdigit() and len(part) <= 2)):
        raise AmountError(f"{words!r} is no amount")
    cents = int(part.ljust(2, "0")) if point else 0
    return int(whole) * 100 + (-cents if int(whole) < 0 else cents)


def format_amount(cents: int) -> str:
    """Cents as an amount with two decimals: 1250 is 12.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"
