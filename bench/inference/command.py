"""The command: strategies × inference times, as a table, JSON and a picture."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from hudsim.bench.inference.cell import STRATEGIES, Cell
from hudsim.bench.inference.picture import draw
from hudsim.bench.shared.document import deliver, head
from hudsim.bench.shared.options import numbers, options
from hudsim.bench.shared.progress import progress
from hudsim.bench.shared.series import series
from hudsim.bench.shared.tables import print_table, table
from hudsim.bridges.arm.bridge import ArmBridge
from hudsim.loop import run
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import Serving

__all__ = ["main"]

_INFER_MS, _TURNS, _AT_ONCE = [5, 10, 20, 50, 100, 200], 3, 4
_QUICK_INFER_MS, _QUICK_STRATEGIES = [20, 100], ("open-loop", "receding")


async def _measure(strategies: list[str], times_ms: list[int], turns: int, at_once: int) -> list[Cell]:
    cells = [Cell(strategy, ms) for strategy in strategies for ms in times_ms]
    serving = Serving(mode="realtime", num_envs=at_once)
    async with RobotEndpoint(ArmBridge, serving=serving, task="lift", privileged=True, cameras=False) as world:
        for turn in range(turns):
            for cell in cells:
                progress(f"turn {turn + 1} of {turns}: {cell.strategy}, {cell.infer_ms} ms")
                await cell.turn(world, range(turn * at_once, (turn + 1) * at_once))
    return cells


def report(cells: list[Cell]) -> dict[str, Any]:
    """Everything as plain JSON."""
    document = head("inference", ("mujoco",))
    document["rows"] = [cell.to_json() for cell in cells]
    document["series"] = [
        series(
            f"{cell.strategy} · {cell.infer_ms} ms · ticks with an action",
            ([1 - one.cadence.starved / max(1, one.cadence.ticks)] for one in cell.episodes),
            unit="share",
            better="higher",
        )
        for cell in cells
    ]
    return document


def show(document: dict[str, Any], console: Console) -> None:
    """The table."""
    made = table(
        "arm-lift at 50 Hz in realtime, chunks of 16",
        words=("strategy",),
        numbers=("inference\nms", "success", "executed\nHz", "starved", "stale", "seam\nrad", "age\nticks"),
    )
    before = None
    for row in document["rows"]:
        if before not in (None, row["strategy"]):
            made.add_section()
        before = row["strategy"]
        age = row["action_age_ticks"]
        made.add_row(
            row["strategy"],
            str(row["infer_ms"]),
            f"{row['successes']} of {row['episodes']}",
            f"{row['executed_hz']:.1f}",
            f"{row['starved_share']:.1%}",
            str(row["stale"]),
            "" if row["seam_max"] is None else f"{row['seam_max']:.3f}",
            "" if age is None else f"{age['p50']} to {age['max']}",
        )
    print_table(console, made)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if a world broke."""
    parser = options("inference", "Chunk strategies against the time that an inference takes, on arm-lift.")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="only this one (may be repeated)")
    parser.add_argument("--times", type=numbers, metavar="5,50", help="ms (default: 5,10,20,50,100,200)")
    parser.add_argument("--turns", type=int, metavar="N", help=f"of {_AT_ONCE} episodes each (default: {_TURNS})")
    asked = parser.parse_args(arguments)
    strategies = asked.strategy or list(_QUICK_STRATEGIES if asked.quick else STRATEGIES)
    times_ms = asked.times or (_QUICK_INFER_MS if asked.quick else _INFER_MS)
    turns, at_once = asked.turns or (1 if asked.quick else _TURNS), 1 if asked.quick else _AT_ONCE
    document = report(run(_measure(strategies, times_ms, turns, at_once)))
    deliver(document, asked, show, draw)
    return int(any(row["errors"] for row in document["rows"]))
