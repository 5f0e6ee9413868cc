"""Budgets: what may be spent on what in a month."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tally.entries import Entry
from tally.money import format_amount, parse_amount
from tally.report import totals


class BudgetError(ValueError):
    """What is no budget."""


def parse_budget(text: str) -> dict[str, int]:
    """Cents a month by category, from lines such as ``food 250``; blank lines and comments are left out."""
    budget: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise BudgetError(f"line {number}: expected a category and an amount")
        name = words[0].casefold()
        if name in budget:
            raise BudgetError(f"line {number}: {name} is there already")
        try:
            budget[name] = parse_amount(words[1])
        except ValueError as error:
            raise BudgetError(f"line {number}: {error}") from None
    return budget


def left(entries: Iterable[Entry], budget: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """For each month with entries (``2024-03``), in order: cents left of each category's budget; below 0 is too much."""
    months: dict[str, list[Entry]] = {}
    for entry in entries:
        months.setdefault(f"{entry.day:%Y-%m}", []).append(entry)
    found = {}
    for month in sorted(months):
        spent = totals(months[month])
        found[month] = {name: cents - spent.get(name, 0) for name, cents in budget.items()}
    return found


def warnings(entries: Iterable[Entry], budget: Mapping[str, int]) -> list[str]:
    """A line for each month and category in which too much was spent."""
    return [
        f"{month}: {name} is over by {format_amount(-cents)}"
        for month, categories in left(entries, budget).items()
        for name, cents in categories.items()
        if cents < 0
    ]
