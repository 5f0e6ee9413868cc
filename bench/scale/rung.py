"""``Rung``: so many worlds on so many processes, for some seconds."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from hudsim.bench.shared.asked import Asked
from hudsim.bench.shared.progress import progress
from hudsim.robot.cadence import Cadence

__all__ = ["LIMIT", "Pace", "Rung", "climb", "throughput"]

LIMIT = 0.01
"""The share of its ticks that a world may miss, or go through without an action, and count as served."""

_REFINED = 2  # halvings between the last rung that held and the first that did not


@dataclass
class Rung:
    """
    worst
        The share of ticks that were missed or starved, of the world that has most.
    cadence
        Of all worlds.
    errors
        How episodes ended that broke.
    """

    world: str
    processes: int
    worlds: int
    transport: str
    worst: float
    cadence: Cadence
    errors: list[str]

    @property
    def served(self) -> bool:
        """Every world was on time."""
        return self.worst < LIMIT and not self.errors

    def to_json(self) -> dict[str, Any]:
        cadence = self.cadence
        return {
            "world": self.world,
            "processes": self.processes,
            "worlds": self.worlds,
            "transport": self.transport,
            "worst_share": round(self.worst, 5),
            "missed_share": round(cadence.missed / max(1, cadence.ticks + cadence.missed), 5),
            "starved_share": round(cadence.starved / max(1, cadence.ticks), 5),
            "skipped_share": round(cadence.skipped / max(1, cadence.ticks), 5),
            "late_us": cadence.late.summary_us(),
            "errors": self.errors,
            "served": self.served,
        }


@dataclass
class Pace:
    """Steps a second in lockstep, of all worlds together, turn by turn."""

    world: str
    processes: int
    worlds: int
    turns: list[float]


def climb(world: str, processes: int, highest: int, seconds: float) -> list[Rung]:
    """Twice as many worlds each time until some are late, then in between; in the order of their number."""
    rungs = list[Rung]()
    slots, held, not_held = 1, 0, 0
    while slots * processes <= highest and not not_held:
        rungs.append(rung := _rung(world, processes, slots, seconds))
        held, not_held = (slots, 0) if rung.served else (held, slots)
        slots *= 2
    for _ in range(_REFINED):
        if not_held - held > 1:
            slots = (held + not_held) // 2
            rungs.append(rung := _rung(world, processes, slots, seconds))
            held, not_held = (slots, not_held) if rung.served else (held, slots)
    return sorted(rungs, key=lambda rung: rung.worlds)


def throughput(world: str, processes: int, slots: int, turns: int, seconds: float) -> Pace:
    """In lockstep, ``slots`` worlds in each of the processes."""
    progress(f"{world}, lockstep, worlds: {processes * slots}, processes: {processes}")
    with ExitStack() as stack:
        crews, _ = _crews(stack, world, processes, slots, "lockstep")
        paces = [sum(answer["steps_per_s"] for answer in _all(crews, {"seconds": seconds})) for _ in range(turns + 1)]
    return Pace(world, processes, processes * slots, paces[1:])  # the first is the warm-up


def _rung(world: str, processes: int, slots: int, seconds: float) -> Rung:
    """One that does not hold has a second try: the machine may have had something else to do."""
    rung = _try(world, processes, slots, seconds)
    return rung if rung.served else _try(world, processes, slots, seconds)


def _try(world: str, processes: int, slots: int, seconds: float) -> Rung:
    progress(f"{world}, realtime, worlds: {processes * slots}, processes: {processes}")
    with ExitStack() as stack:
        crews, transport = _crews(stack, world, processes, slots, "realtime")
        answers = _all(crews, {"seconds": seconds})
    cadence = Cadence()
    for answer in answers:
        cadence.merge(Cadence.from_json(answer["cadence"]))
    worst, errors = max(answer["worst"] for answer in answers), [end for answer in answers for end in answer["errors"]]
    return Rung(world, processes, processes * slots, transport, worst, cadence, errors)


def _crews(stack: ExitStack, world: str, processes: int, slots: int, mode: str) -> tuple[list[Asked], str]:
    command = [sys.executable, "-m", "hudsim.bench.scale.crew"]
    crews = [stack.enter_context(Asked(f"{world}, crew {i}", command)) for i in range(processes)]
    return crews, _all(crews, {"world": world, "slots": slots, "mode": mode})[0]["transport"]


def _all(crews: list[Asked], request: dict[str, Any]) -> list[dict[str, Any]]:
    for crew in crews:
        crew.tell(request)
    return [crew.hear() for crew in crews]
