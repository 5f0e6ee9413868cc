"""The command: payloads × systems, as a table, JSON and a picture."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Any

from rich.console import Console

from hudsim.bench.latency.payload import CONTENTS, PAYLOADS
from hudsim.bench.latency.picture import draw
from hudsim.bench.latency.system import FLOOR, OWN, PEERS, Row, System, measure
from hudsim.bench.shared.document import deliver, head, packages
from hudsim.bench.shared.options import options
from hudsim.bench.shared.series import series
from hudsim.bench.shared.tables import print_table, table

__all__ = ["main"]

_TURNS, _QUICK_TURNS = 400, 3
_QUICK_PAYLOADS = ("state", "2x224")


def report(rows: list[Row], content: str) -> dict[str, Any]:
    """Everything as plain JSON; a row's ``ratio`` is that of its median to the floor's."""
    document = head("latency", ("websockets", "uvloop"))
    document["content"] = content
    document["rows"] = [row.to_json() for row in rows]
    floors = {row["payload"]: row["us"]["p50"] for row in document["rows"] if row["system"] == FLOOR}
    for row in document["rows"]:
        row["ratio"] = round(row["us"]["p50"] / floors[row["payload"]], 2)
    document["series"] = [
        series(
            f"{row.payload}, {content} · {row.system}",
            ([ns / 1e3 for ns in turn] for turn in row.turns_ns),
            unit="us",
            judged=row.judged,
        )
        for row in rows
    ]
    return document


def show(document: dict[str, Any], console: Console) -> None:
    """The tables: the times, and what they cost."""
    peers = {row["system"]: row["versions"] for row in document["rows"] if row["system"] in PEERS}
    for name, versions in peers.items():
        console.print(f"{name}: {packages(versions)}", markup=False)
    quantiles = ("p50", "p90", "p99", "p99.9", "max")
    times = table(
        f"action → next observation, µs ({document['content']})",
        words=("payload", "system"),
        numbers=(*(f"{q}\nµs" for q in quantiles), "× floor", "trips"),
    )
    costs = table(
        "of a tick: CPU time, and what crossed",
        words=("payload", "system"),
        numbers=("client\nµs", "server\nµs", "socket\nKB", "memory\nKB"),
    )
    for payload in dict.fromkeys(row["payload"] for row in document["rows"]):
        for row in (row for row in document["rows"] if row["payload"] == payload):
            taken = ("" if row["us"][q] is None else f"{row['us'][q]:.0f}" for q in quantiles)
            times.add_row(payload, row["system"], *taken, f"{row['ratio']:.2f}", str(row["trips"]))
            cpu = (f"{row[name]:.0f}" for name in ("client_cpu_us", "server_cpu_us"))
            crossed = (f"{row[name] / 1e3:.1f}" for name in ("socket_bytes", "memory_bytes"))
            costs.add_row(payload, row["system"], *cpu, *crossed)
        times.add_section()
        costs.add_section()
    print_table(console, times)
    print_table(console, costs)
    absent = [name for name in PEERS if name not in {row["system"] for row in document["rows"]}]
    if absent:
        how = " ".join(f"--peer {name}=PYTHON" for name in absent)
        console.print(f"not measured: {', '.join(absent)} ({how}, where it is installed)", highlight=False)


def _peer(words: str) -> System:
    name, _, python = words.partition("=")
    if name not in PEERS or not python:
        known = " or ".join(f"{name}=PYTHON" for name in PEERS)
        raise argparse.ArgumentTypeError(f"got {words!r}, expected {known}")
    if shutil.which(python) is None:
        raise argparse.ArgumentTypeError(f"{name}: no interpreter {python}")
    return System(name, PEERS[name], python)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = options("latency", "Action to next observation: hudsim, its floors and its peers, by turns.")
    parser.add_argument("--payload", action="append", choices=list(PAYLOADS), help="only this one (may be repeated)")
    parser.add_argument(
        "--peer",
        action="append",
        type=_peer,
        default=[],
        metavar="NAME=PYTHON",
        help=f"measure {' or '.join(PEERS)} too, installed for that interpreter (may be repeated)",
    )
    parser.add_argument("--content", choices=CONTENTS, default=CONTENTS[0], help="of the pictures (default: camera)")
    parser.add_argument("--turns", type=int, metavar="N", help=f"of up to 50 trips each (default: {_TURNS})")
    asked = parser.parse_args(arguments)
    turns = asked.turns or (_QUICK_TURNS if asked.quick else _TURNS)
    payloads = asked.payload or (_QUICK_PAYLOADS if asked.quick else PAYLOADS)
    systems = [*(System(name, file, sys.executable) for name, file in OWN.items()), *asked.peer]
    rows = [row for payload in payloads for row in measure(payload, systems, turns, asked.content)]
    deliver(report(rows, asked.content), asked, show, draw)
    return 0
