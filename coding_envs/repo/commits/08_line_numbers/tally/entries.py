"""Entries: one line each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from tally.money import AmountError, parse_amount


class EntryError(ValueError):
    """A line that is no entry. ``number``: which line of the text, counted from 1; None for a line by itself."""

    number: int | None = None


@dataclass(frozen=True)
class Entry:
    """Money spent (or, below 0, got back) on a day for a category."""

    day: date
    category: str
    cents: int
    note: str = ""


def parse_line(line: str) -> Entry:
    """The entry in a line such as ``2024-01-05 groceries 12.50 bread and milk``. EntryError if there is none."""
    words = line.split(maxsplit=3)
    if len(words) < 3:
        raise EntryError(f"{line!r} has no day, category and amount")
    try:
        day, cents = date.fromisoformat(words[0]), parse_amount(words[2])
    except AmountError as error:
        raise EntryError(str(error)) from None
    except ValueError:
        raise EntryError(f"{words[0]!r} is no day") from None
    return Entry(day, words[1], cents, words[3].strip() if len(words) > 3 else "")


def parse_text(text: str) -> list[Entry]:
    """The entries of a whole text, in order, without blank lines and comments (``# …``). EntryError says which line."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entries.append(parse_line(line))
        except EntryError as error:
            numbered = EntryError(f"line {number}: {error}")
            numbered.number = number
            raise numbered from None
    return entries
