"""How the benchmarks' tables look: close together, and never narrower than what is in them."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["print_table", "table"]

_ANY_WIDTH = 10_000


def table(title: str, *, words: tuple[str, ...] = (), numbers: tuple[str, ...] = ()) -> Table:
    """One with the columns of ``words``, then those of ``numbers``. A heading may have several lines."""
    made = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in words:
        made.add_column(heading, no_wrap=True)
    for heading in numbers:
        made.add_column(heading, justify="right", no_wrap=True)
    return made


def print_table(console: Console, made: Table) -> None:
    """Print it at the width of its content, an empty line above: a narrow terminal folds lines, and cuts no figure."""
    made.width = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), made).maximum
    title, made.title = made.title, None  # which rich would fold to the width of the table
    console.print()
    console.print(title, style="table.title", markup=False)
    console.print(made, crop=False)
