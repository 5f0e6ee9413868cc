"""What was spent on what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tally.entries import Entry
from tally.money import format_amount


def totals(entries: Iterable[Entry]) -> dict[str, int]:
    """Cents by category, the largest first, of equal ones by name. ``Food`` and ``food`` are one: ``food``."""
    found: dict[str, int] = {}
    for entry in entries:
        name = entry.category.casefold()
        found[name] = found.get(name, 0) + entry.cents
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def table(sums: Mapping[str, int]) -> str:
    """One line a category, amounts one below the other, and the sum of all in the last."""
    rows = [(name, format_amount(cents)) for name, cents in sums.items()]
    rows.append(("total", format_amount(sum(sums.values()))))
    left = max(len(name) for name, _ in rows)
    right = max(len(amount) for _, amount in rows)
    return "\n".join(f"{name:<{left}}  {amount:>{right}}" for name, amount in rows)
