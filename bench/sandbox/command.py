"""The command: the ladder, as a table or JSON."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

from hudsim.bench.sandbox.rung import PHASES, STAGES, Rung, climb
from hudsim.bench.shared.document import deliver, head
from hudsim.bench.shared.options import numbers, options
from hudsim.bench.shared.progress import progress
from hudsim.bench.shared.tables import print_table, table
from hudsim.loop import run

__all__ = ["FIRST_MS", "WARM_MS", "WIDEST_S", "main"]

FIRST_MS = 100.0
"""From start to the first command's result, one workspace at a time."""
WIDEST_S = 5.0
"""The same, median, 256 at once."""
WARM_MS = 5.0
"""What a warm command may take beside twice its floor."""

_LADDER, _CREATES = (1, 4, 16, 64, 256), 256
_QUICK_LADDER, _QUICK_CREATES = (1, 4), 4
_WIDEST = 256


async def _measure(ladder: list[int], creates: int) -> list[Rung]:
    rungs = []
    for width in ladder:
        rungs.append(rung := await climb(width, creates))
        progress(f"{width} at once: {rung.creates} made, {sum(rung.failures.values())} failed")
    return rungs


def report(rungs: list[Rung]) -> dict[str, Any]:
    """Everything as plain JSON: the machine, the rungs, and what of it is held to a limit."""
    return head("sandbox", ("asyncssh",)) | {
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
        "creates": sum(rung.creates for rung in rungs),
        "rungs": [rung.to_json() for rung in rungs],
        "limits": _limits([rung.to_json() for rung in rungs]),
    }


def _limits(rungs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"what", "got_ms", "at_most_ms"}`` of each that was measured."""
    out = []
    for rung in rungs:
        ms, width = rung["ms"], rung["width"]
        most = {1: FIRST_MS, _WIDEST: WIDEST_S * 1e3}.get(width)
        if most is not None and "start" in ms:
            out.append({"what": f"start, {width} at once, p50", "got_ms": ms["start"]["p50"], "at_most_ms": most})
        if "warm" in ms:
            most = round(2 * ms["bare"]["p50"] + WARM_MS, 2)
            out.append({"what": f"warm, {width} at once, p50", "got_ms": ms["warm"]["p50"], "at_most_ms": most})
    return out


def show(document: dict[str, Any], console: Console) -> None:
    """The tables."""
    times = table(
        f"{document['creates']} workspaces of {document['user']}: ms",
        words=("at once", ""),
        numbers=("p50\nms", "p95\nms", "p99\nms", "max\nms"),
    )
    for rung in document["rungs"]:
        for phase in (*PHASES[:2], *STAGES, *PHASES[2:]):
            if (ms := rung["ms"].get(phase)) is not None:
                width = str(rung["width"]) if phase == PHASES[0] else ""
                name = f"  {phase}" if phase in STAGES else phase
                times.add_row(width, name, *(f"{ms[q]:.1f}" for q in ("p50", "p95", "p99", "max")))
        times.add_section()
    print_table(console, times)
    rest = table(
        "and",
        numbers=("at once", "made", "failed", "left", "memory\nMiB", "loop late\np99 ms", "\nmax ms"),
    )
    for rung in document["rungs"]:
        left = ", ".join(f"{count} {what}" for what, count in rung["left"].items() if count) or "nothing"
        failed, stall = sum(rung["failures"].values()), rung["stall_ms"]
        late = (f"{stall.get('p99', 0):.0f}", f"{stall.get('max', 0):.0f}")
        rest.add_row(str(rung["width"]), str(rung["creates"]), str(failed), left, f"{rung['memory_mib']:.0f}", *late)
    print_table(console, rest)
    for rung in document["rungs"]:
        for words, count in rung["failures"].items():
            console.print(f"{rung['width']} at once: {count} × {words}", markup=False)
    for limit in document["limits"]:
        met = "" if limit["got_ms"] <= limit["at_most_ms"] else "  (missed)"
        console.print(f"{limit['what']}: {limit['got_ms']:.1f} ms; at most {limit['at_most_ms']:.1f} ms{met}")


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if something failed or was left behind."""
    parser = options(
        "sandbox", "What a workspace costs from its start to its end, one and many at once, beside a bare bubblewrap."
    )
    parser.add_argument("--ladder", type=numbers, metavar="1,4,16", help="how many at once (default: 1,4,16,64,256)")
    parser.add_argument("--creates", type=int, metavar="N", help=f"so many in all at each width (default: {_CREATES})")
    asked = parser.parse_args(arguments)
    ladder = asked.ladder or list(_QUICK_LADDER if asked.quick else _LADDER)
    creates = asked.creates or (_QUICK_CREATES if asked.quick else _CREATES)
    rungs = run(_measure(ladder, creates))
    deliver(report(rungs), asked, show)
    return int(not all(rung.well for rung in rungs))
