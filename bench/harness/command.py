"""The command: all three measurements, as tables or JSON."""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from hudsim.bench.harness.episodes import compared, episodes
from hudsim.bench.harness.floors import serve_floor
from hudsim.bench.harness.stages import profile, stages
from hudsim.bench.harness.throughput import throughput
from hudsim.bench.harness.watch import STAGES
from hudsim.bench.shared.document import deliver, head
from hudsim.bench.shared.options import options
from hudsim.bench.shared.series import series
from hudsim.bench.shared.tables import print_table, table
from hudsim.loop import run
from hudsim.loop.run import new_event_loop

__all__ = ["LIMIT_S", "main"]

LIMIT_S = 30.0
"""What 1,000 runs of `letters` may take in this process, one at a time and each committed."""


@dataclass(frozen=True)
class _Size:
    """Turns, and the runs of each task in a turn; seeds of `arm-reach`; runs of `letters` seen by stages."""

    turns: int = 20
    group: int = 5
    seeds: int = 40
    watched: int = 300


_QUICK = _Size(turns=1, group=1, seeds=2, watched=5)


async def _measure(size: _Size) -> dict[str, Any]:
    document = head("harness", ("websockets",))
    document["versions"]["sqlite"] = sqlite3.sqlite_version
    systems = await throughput(size.turns, size.group)
    kept = next(system for system in systems if system.rows_kept is not None)
    return document | {
        "throughput": [system.to_json() for system in systems],
        "thousand_s": round(kept.thousand_s, 2),
        "limit_s": LIMIT_S,
        "episode": compared(await episodes(size.seeds)),
        "stages_us": await stages(size.watched),
        "series": [
            series(
                f"{one.name}, {one.at_once} at once",
                ([s / one.runs * 1e3] for s in one.turns_s),
                unit="ms",
                judged=bool(one.floors),
            )
            for one in systems
        ],
    }


def show(document: dict[str, Any], console: Console) -> None:
    """The tables."""
    _print_throughput(console, document)
    episode = document["episode"]
    console.print(
        f"arm-reach, {episode['episodes']} seeds of {episode['ticks']:g} ticks: {episode['bare_ms']:.1f} ms bare, "
        f"{episode['run_ms']:.1f} ms as a graded run (× {episode['ratio_to_floor']:.2f}), "
        f"{episode['added_ms']:+.1f} ms, of which {episode['commit_ms']:.1f} ms for the commit",
    )
    runs, floors = document["stages_us"]["run"], document["stages_us"]["floor"]
    made = table(
        "where a run of letters goes: local, committed", words=("stage",), numbers=("µs", "share", "floor\nµs")
    )
    for stage in STAGES:
        made.add_row(stage, f"{runs[stage]:.0f}", f"{runs[stage] / runs['run']:.0%}", f"{floors[stage]:.0f}")
    print_table(console, made)


def _print_throughput(console: Console, document: dict[str, Any]) -> None:
    made = table(
        "runs of letters with noop",
        words=("",),
        numbers=("at once", "ms a run", "runs/s", "floors\nms", "× floor"),
    )
    for row in document["throughput"]:
        floor = ("", "") if row["floor_ms"] is None else (f"{row['floor_ms']:.2f}", f"{row['ratio_to_floor']:.2f}")
        made.add_row(row["system"], str(row["at_once"]), f"{row['run_ms']:.2f}", f"{row['runs_per_s']:.0f}", *floor)
    print_table(console, made)
    thousand_s, limit_s = document["thousand_s"], document["limit_s"]
    console.print(f"1,000 runs, local, one at a time, each committed: {thousand_s:.1f} s; at most {limit_s:g} s")


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if 1,000 runs took longer than they may."""
    parser = options("harness", "What the harness costs, beside the same work bare.")
    parser.add_argument("--profile", action="store_true", help="print where most time is spent, to stderr")
    parser.add_argument("--floor", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.floor:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(serve_floor())
        return 0
    size = _QUICK if asked.quick else _Size()
    document = run(_measure(size))
    if asked.profile:
        run(profile(size.watched))
    deliver(document, asked, show)
    return int(document["thousand_s"] > LIMIT_S and not asked.quick)
