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


def nested(entries: Iterable[Entry], depth: int | None = None) -> dict[str, int]:
    """Cents by category, those of ``food:bread`` counted into ``food`` too; in the order of :func:`totals`, each
    category followed by those below it.

    depth
        How many levels to show. None: all. ValueError below 1.
    """
    if depth is not None and depth < 1:
        raise ValueError(f"got the depth {depth}, expected at least 1")
    found: dict[tuple[str, ...], int] = {}
    for name, cents in totals(entries).items():
        parts = tuple(name.split(":"))
        for level in range(1, len(parts) + 1):
            found[parts[:level]] = found.get(parts[:level], 0) + cents

    def place(parts: tuple[str, ...]) -> list[tuple[int, str]]:
        return [(-found[parts[:level]], parts[level - 1]) for level in range(1, len(parts) + 1)]

    shown = [parts for parts in found if depth is None or len(parts) <= depth]
    return {":".join(parts): found[parts] for parts in sorted(shown, key=place)}


def table(sums: Mapping[str, int]) -> str:
    """One line a category, amounts one below the other, and the sum of all in the last."""
    rows = [(name, format_amount(cents)) for name, cents in sums.items()]
    rows.append(("total", format_amount(sum(sums.values()))))
    left = max(len(name) for name, _ in rows)
    right = max(len(amount) for _, amount in rows)
    return "\n".join(f"{name:<{left}}  {amount:>{right}}" for name, amount in rows)
