"""The benchmarks' tables: whole, however narrow the terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from hudsim.bench.shared.tables import print_table, table


def test_a_table_is_as_wide_as_what_is_in_it() -> None:
    made = table("figures", words=("name",), numbers=("one\nµs", "another\nµs"))
    made.add_row("a name of some length", "1234567", "7654321")
    out = StringIO()
    print_table(Console(width=20, file=out), made)
    assert "a name of some length  1234567  7654321" in out.getvalue()
    assert "…" not in out.getvalue()
