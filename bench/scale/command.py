"""The command: rungs and paces, as tables, JSON and a picture."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from hudsim.bench.scale.picture import draw
from hudsim.bench.scale.rung import LIMIT, Pace, Rung, climb, throughput
from hudsim.bench.scale.worlds import RATE_HZ, WORLDS
from hudsim.bench.shared.document import cores, deliver, head
from hudsim.bench.shared.options import numbers, options
from hudsim.bench.shared.series import series
from hudsim.bench.shared.tables import print_table, table

__all__ = ["main"]

_HIGHEST, _SECONDS, _TURNS = 256, 4.0, 5
_QUICK_HIGHEST, _QUICK_SECONDS, _QUICK_TURNS = 2, 0.3, 2
_SLOTS = (1, 2, 4, 8, 16, 32)
_PROCESSES = (2, 4)
_TURN_S = 0.5


def _served(rungs: list[Rung]) -> list[dict[str, Any]]:
    """The most that each kind of world was served with, by processes."""
    most: dict[tuple[str, int], int] = {}
    for rung in rungs:
        key = (rung.world, rung.processes)
        most[key] = max(most.get(key, 0), rung.worlds if rung.served else 0)
    return [{"world": world, "processes": processes, "worlds": n} for (world, processes), n in most.items()]


def report(rungs: list[Rung], paces: list[Pace]) -> dict[str, Any]:
    """Everything as plain JSON."""
    document = head("scale", ("websockets", "uvloop"))
    document |= {"rate_hz": RATE_HZ, "limit": LIMIT, "served": _served(rungs)}
    document["rungs"] = [rung.to_json() for rung in rungs]
    document["paces"] = [
        {
            "world": p.world,
            "processes": p.processes,
            "worlds": p.worlds,
            "steps_per_s": round(sorted(p.turns)[len(p.turns) // 2]),
        }
        for p in paces
    ]
    document["series"] = [
        series(f"{p.world} · {p.worlds} on {p.processes}", ([t] for t in p.turns), unit="steps/s", better="higher")
        for p in paces
    ]
    return document


def show(document: dict[str, Any], console: Console) -> None:
    """The tables."""
    rungs = table(
        f"worlds at {document['rate_hz']:g} Hz, each with an agent",
        words=("world",),
        numbers=("processes", "worlds", "worst", "missed", "starved", "skipped", "late\np50\nµs", "\np99\nµs"),
    )
    for rung in document["rungs"]:
        late = rung["late_us"] or {"p50": float("nan"), "p99": float("nan")}
        shares = (f"{rung[name]:.2%}" for name in ("worst_share", "missed_share", "starved_share", "skipped_share"))
        counts = (str(rung["processes"]), str(rung["worlds"]))
        rungs.add_row(rung["world"], *counts, *shares, f"{late['p50']:.0f}", f"{late['p99']:.0f}")
    print_table(console, rungs)
    for most in document["served"]:
        of = "1 process" if most["processes"] == 1 else f"{most['processes']} processes"
        console.print(f"{most['world']}: {most['worlds']} worlds on {of} with less than {document['limit']:.0%} missed")
    paces = table(
        "lockstep: steps a second, all worlds together", words=("world",), numbers=("processes", "worlds", "steps/s")
    )
    for pace in document["paces"]:
        paces.add_row(pace["world"], str(pace["processes"]), str(pace["worlds"]), str(pace["steps_per_s"]))
    print_table(console, paces)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = options("scale", "How many 50 Hz worlds are served on time, and steps a second in lockstep.")
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="default: state and camera")
    parser.add_argument("--processes", type=numbers, metavar="1,2", help="of worlds (default: 1 and one a core)")
    parser.add_argument("--highest", type=int, metavar="N", help=f"no more worlds than that (default: {_HIGHEST})")
    asked = parser.parse_args(arguments)
    quick = asked.quick
    worlds = asked.world or ["state", "camera"]
    highest, seconds = asked.highest or (_QUICK_HIGHEST if quick else _HIGHEST), _QUICK_SECONDS if quick else _SECONDS
    processes = asked.processes or ([1] if quick else sorted({1, cores()}))
    rungs = [rung for world in worlds for count in processes for rung in climb(world, count, highest, seconds)]
    sizes = [(1, 2)] if quick else [*((1, slots) for slots in _SLOTS), *((count, 1) for count in _PROCESSES)]
    turns, turn_s = (_QUICK_TURNS, 0.1) if quick else (_TURNS, _TURN_S)
    cards = [world for world in worlds if not world.startswith("arm")]  # an arm's episode ends too soon
    paces = [throughput(world, *size, turns, turn_s) for world in cards for size in sizes]
    deliver(report(rungs, paces), asked, show, draw)
    return 0
