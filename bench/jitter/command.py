"""The command: rates × loads, as a table, JSON and a picture."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from hudsim.bench.jitter.cell import Cell
from hudsim.bench.jitter.loads import LOADS
from hudsim.bench.jitter.picture import draw
from hudsim.bench.shared.document import deliver, head
from hudsim.bench.shared.options import numbers, options
from hudsim.bench.shared.progress import progress
from hudsim.bench.shared.series import series
from hudsim.bench.shared.tables import print_table, table
from hudsim.loop import run

__all__ = ["main"]

_RATES, _TURNS, _SECONDS = [50, 100, 250, 500, 1000], 5, 3.0
_QUICK_RATES, _QUICK_TURNS, _QUICK_SECONDS = [100], 1, 0.3


async def _measure(rates: list[int], loads: list[str], turns: int, seconds: float) -> list[Cell]:
    cells = [Cell(rate, load) for rate in rates for load in loads]
    for turn in range(turns):
        for cell in cells:
            progress(f"turn {turn + 1} of {turns}: {cell.rate_hz} Hz, {cell.load}")
            await cell.turn(seconds)
    return cells


def report(cells: list[Cell]) -> dict[str, Any]:
    """Everything as plain JSON."""
    document = head("jitter", ("websockets", "uvloop"))
    document["rows"] = [cell.to_json() for cell in cells]
    document["series"] = []
    for cell in cells:
        name = f"{cell.rate_hz} Hz · {cell.load}"
        document["series"] += [series(f"{name} · late", cell.late_us, unit="us")]
        document["series"] += [series(f"{name} · arrival", cell.arrival_us, unit="us")]
    return document


def show(document: dict[str, Any], console: Console) -> None:
    """The table."""
    times = ("\np50\nµs", "\np99\nµs", "\nmax\nµs")
    made = table(
        "lateness of ticks: by the world's record, and of their arrival at the agent",
        words=("load",),
        numbers=("Hz", f"late{times[0]}", *times[1:], f"arrival{times[0]}", *times[1:], "ticks", "missed", "starved"),
    )
    for row in sorted(document["rows"], key=lambda row: list(LOADS).index(row["load"])):
        late, arrival = row["late_us"], row["arrival_us"]
        made.add_row(
            row["load"],
            str(row["rate_hz"]),
            *(f"{values[q]:.0f}" for values in (late, arrival) for q in ("p50", "p99", "max")),
            str(row["ticks"]),
            f"{row['missed_share']:.2%}",
            str(row["starved"]),
        )
    print_table(console, made)
    for load in dict.fromkeys(row["load"] for row in document["rows"]):
        console.print(f"{load}: {LOADS[load]}", markup=False)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = options("jitter", "How late ticks are and how many are missed, by rate and by what else goes on.")
    parser.add_argument("--rates", type=numbers, metavar="50,100", help="Hz (default: 50,100,250,500,1000)")
    parser.add_argument("--load", action="append", choices=list(LOADS), help="only this one (may be repeated)")
    parser.add_argument("--turns", type=int, metavar="N", help=f"of each (default: {_TURNS})")
    parser.add_argument("--seconds", type=_positive, metavar="S", help=f"of a turn (default: {_SECONDS:g})")
    asked = parser.parse_args(arguments)
    rates = asked.rates or (_QUICK_RATES if asked.quick else _RATES)
    turns = asked.turns or (_QUICK_TURNS if asked.quick else _TURNS)
    seconds = asked.seconds or (_QUICK_SECONDS if asked.quick else _SECONDS)
    cells = run(_measure(rates, asked.load or list(LOADS), turns, seconds))
    deliver(report(cells), asked, show, draw)
    return 0


def _positive(words: str) -> float:
    seconds = float(words)
    if not 0 < seconds < 3600:
        raise argparse.ArgumentTypeError(f"got {words}, expected seconds above 0")
    return seconds
