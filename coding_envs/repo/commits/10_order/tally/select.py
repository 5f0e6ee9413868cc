"""Some of the entries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from tally.entries import Entry


def between(entries: Iterable[Entry], first: date | None = None, last: date | None = None) -> list[Entry]:
    """Those from the day ``first`` to the day ``last``. None: from the beginning, to the end."""
    return [
        entry
        for entry in entries
        if (first is None or entry.day >= first) and (last is None or entry.day <= last)
    ]


def of_category(entries: Iterable[Entry], category: str) -> list[Entry]:
    """Those of one category, in upper or lower case."""
    return [entry for entry in entries if entry.category.casefold() == category.casefold()]
