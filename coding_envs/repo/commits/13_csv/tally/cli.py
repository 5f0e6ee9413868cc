"""The command line: ``python -m tally FILE [--from DAY] [--to DAY] [--csv]``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tally.entries import parse_text
from tally.export import to_csv
from tally.report import table, totals
from tally.select import between


def report(text: str, first: date | None = None, last: date | None = None, *, as_csv: bool = False) -> str:
    """The table of a text's entries from the day ``first`` to the day ``last``; or the entries, as CSV."""
    entries = between(parse_text(text), first, last)
    return to_csv(entries).rstrip("\n") if as_csv else table(totals(entries))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report of a file. 0, or 2 for a file that holds something else than entries."""
    parser = argparse.ArgumentParser(prog="tally", description="Where the money goes.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--from", dest="first", type=date.fromisoformat, metavar="DAY")
    parser.add_argument("--to", dest="last", type=date.fromisoformat, metavar="DAY")
    parser.add_argument("--csv", action="store_true", help="the entries, for other programs")
    given = parser.parse_args(argv)
    try:
        print(report(given.file.read_text(), given.first, given.last, as_csv=given.csv))
    except ValueError as error:
        print(f"tally: {given.file}: {error}")
        return 2
    return 0
