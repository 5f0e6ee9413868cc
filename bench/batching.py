"""Actions a second from 1 to 64 agents that share a model: batched, one by one, and the floor, in the same run.

An agent asks for a chunk, is busy with it for 8 ms (8 ticks of 1 ms), and asks again. ``batched`` are forks of a
``BatchedModel``; ``one by one`` forks of the model itself, which share its thread, so that each call is one agent's;
``one loop`` is the floor, a program that plays all worlds in step and has all rows in one array before it calls.

The models: a price of 20 ms a call and 1 ms a row, slept, as a model on another device; and a real network in numpy,
64 → 1024 → 1024 → chunk.

    python -m hudsim.bench.batching [--quick] [--agents 1,8] [--json] [--out FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from hudsim.bench.shared.document import deliver, head, heading
from hudsim.bench.shared.options import numbers, options
from hudsim.bench.shared.pictures import COLOURS, legend, panels
from hudsim.bench.shared.program import program
from hudsim.bench.shared.progress import progress
from hudsim.bench.shared.series import quantiles, series
from hudsim.bench.shared.tables import print_table, table
from hudsim.loop import run
from hudsim.robot.batched import BatchedModel
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MODELS", "SYSTEMS", "Mlp", "Priced", "main", "measure"]

SYSTEMS = ("batched", "one by one", "one loop")
_FLOOR = "one loop"
_AGENTS, _QUICK_AGENTS = (1, 2, 4, 8, 16, 32, 64), (1, 4)
_TICKS, _TICK_S, _ACTION, _STATE = 8, 0.001, 7, 64
_WARM_S = 0.5  # in which a batched model learns the agents' habits


class _Counted(Model):
    """Notes how many rows each call had, its forks' too."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def infer(self, batch: Mapping[str, Any]) -> Array:
        """[N, 8, 7]."""
        self.calls.append(len(batch["state"]))
        return self.chunks(batch["state"])

    def chunks(self, state: Array) -> Array:
        """Those for ``state`` [N, 64]."""
        raise NotImplementedError


class Priced(_Counted):
    """Sleeps ``fixed_s`` a call and ``each_s`` a row."""

    def __init__(self, fixed_s: float = 0.020, each_s: float = 0.001) -> None:
        super().__init__()
        self._fixed_s, self._each_s = fixed_s, each_s

    def chunks(self, state: Array) -> Array:
        time.sleep(self._fixed_s + len(state) * self._each_s)
        return np.zeros((len(state), _TICKS, _ACTION), np.float32)


class Mlp(_Counted):
    """Two hidden layers of ``hidden`` rectified units, float32."""

    def __init__(self, hidden: int = 1024) -> None:
        super().__init__()
        rng, sizes = np.random.default_rng(0), (_STATE, hidden, hidden, _TICKS * _ACTION)
        self._layers = [
            (rng.standard_normal((before, after)) / np.sqrt(before)).astype(np.float32)
            for before, after in pairwise(sizes)
        ]

    def chunks(self, state: Array) -> Array:
        *hidden, last = self._layers
        for layer in hidden:
            state = np.maximum(state @ layer, 0)
        chunks: Array = (state @ last).reshape(-1, _TICKS, _ACTION)
        return chunks


MODELS: dict[str, Callable[[], _Counted]] = {"20 ms + 1 ms a row": Priced, "network in numpy": Mlp}


@dataclass
class _System:
    """One system with so many agents: for each turn its rate and its latencies."""

    name: str
    model: _Counted
    asked: list[Model]
    agents: int
    rows: int
    actions_per_s: list[float] = field(default_factory=list)
    latencies_ms: list[list[float]] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, made: Callable[[], _Counted], agents: int) -> _System:
        model = made()
        if name == _FLOOR:
            return cls(name, model, [model], agents, rows=agents)
        shared: Model = BatchedModel(model, max_batch=max(_AGENTS)) if name == "batched" else model
        return cls(name, model, [shared.fork() for _ in range(agents)], agents, rows=1)

    async def warm_up(self) -> None:
        await self.turn(_WARM_S, chunks=1)
        self.actions_per_s.clear()
        self.latencies_ms.clear()
        self.model.calls.clear()

    async def turn(self, seconds: float, chunks: int) -> None:
        """Every agent asks for so many chunks at least, for so long at least.

        The latency of its first is left out: all start at once.
        """
        began = time.perf_counter()
        asking = [self._agent(model, began + seconds, chunks) for model in self.asked]
        taken = await asyncio.gather(*asking)
        took_s = time.perf_counter() - began
        count = sum(map(len, taken)) * self.rows
        self.actions_per_s.append(count * _TICKS / took_s)
        self.latencies_ms.append([1e3 * latency for one in taken for latency in one[1:] or one])

    async def _agent(self, model: Model, until: float, chunks: int) -> list[float]:
        batch = {"state": np.ones((self.rows, _STATE), np.float32), "prompt": ["go"] * self.rows}
        taken: list[float] = []
        while len(taken) < chunks or time.perf_counter() < until:
            asked = time.perf_counter()
            await model.ainfer(batch)
            taken.append(time.perf_counter() - asked)
            await asyncio.sleep(_TICKS * _TICK_S)
        return taken


@dataclass(frozen=True)
class _Size:
    """How many turns, and of a turn: seconds and chunks an agent, at least."""

    turns: int = 3
    seconds: float = 1.0
    chunks: int = 4


_QUICK = _Size(turns=1, seconds=0.1, chunks=2)


async def measure(agents: list[int], size: _Size) -> list[tuple[str, _System]]:
    """Each model's name with each system that asked it; the systems take turns."""
    measured = []
    for name, made in MODELS.items():
        for count in agents:
            progress(f"{name}, agents: {count}")
            systems = [_System.of(system, made, count) for system in SYSTEMS]
            for system in systems:
                await system.warm_up()
            for _ in range(size.turns):
                for system in systems:
                    await system.turn(size.seconds, size.chunks)
            measured += [(name, system) for system in systems]
    return measured


def report(measured: list[tuple[str, _System]]) -> dict[str, Any]:
    """Everything as plain JSON: a row a model, number of agents and system, and the samples by turns."""
    floors = {(model, one.agents): one.actions_per_s for model, one in measured if one.name == _FLOOR}
    rows, samples = [], []
    for model, one in measured:
        rate, floor = np.median(one.actions_per_s), np.median(floors[model, one.agents])
        rows.append(
            {
                "model": model,
                "agents": one.agents,
                "system": one.name,
                "actions_per_s": round(float(rate), 1),
                "share_of_floor": round(float(rate / floor), 3),
                "rows_per_call": round(float(np.mean(one.model.calls)), 2),
                "latency_ms": quantiles([ms for turn in one.latencies_ms for ms in turn]),
            }
        )
        name = f"{model}, {one.agents} agents, {one.name}"
        samples.append(series(f"{name}: latency", one.latencies_ms, unit="ms", judged=one.name != _FLOOR))
        rates = [[rate] for rate in one.actions_per_s]
        samples.append(series(f"{name}: actions", rates, unit="1/s", better="higher", judged=one.name != _FLOOR))
    return {**head("batching"), "rows": rows, "series": samples}


def show(document: dict[str, Any], console: Console) -> None:
    """The tables, one a model."""
    for model in dict.fromkeys(row["model"] for row in document["rows"]):
        made = table(
            f"agents that share a model: {model}",
            words=("agents", "system"),
            numbers=("actions/s", "p50\nms", "p99\nms", "rows\na call", "× one\nby one", "× one\nloop"),
        )
        for agents in dict.fromkeys(row["agents"] for row in document["rows"]):
            rows = [row for row in document["rows"] if (row["model"], row["agents"]) == (model, agents)]
            alone = next(row["actions_per_s"] for row in rows if row["system"] == "one by one")
            for row in rows:
                made.add_row(
                    str(agents),
                    row["system"],
                    f"{row['actions_per_s']:.0f}",
                    *(f"{row['latency_ms'][q]:.1f}" for q in ("p50", "p99")),
                    f"{row['rows_per_call']:.1f}",
                    f"{row['actions_per_s'] / alone:.2f}",
                    f"{row['share_of_floor']:.2f}",
                )
            made.add_section()
        print_table(console, made)


def draw(document: dict[str, Any]) -> Figure:
    """Actions a second over the number of agents, a panel a model."""
    models = list(dict.fromkeys(row["model"] for row in document["rows"]))
    figure, axes = panels(len(models), f"agents that share a model · {heading(document)}", width=5.0)
    for ax, model in zip(axes, models, strict=True):
        for system, line, colour in zip(SYSTEMS, ("o-", "o-", "--"), (*COLOURS[:2], "black"), strict=True):
            rows = [row for row in document["rows"] if (row["model"], row["system"]) == (model, system)]
            counts, rates = [row["agents"] for row in rows], [row["actions_per_s"] for row in rows]
            ax.plot(counts, rates, line, color=colour, markersize=3, label=system)
        ax.set_xscale("log", base=2)
        ax.set_xticks(sorted({row["agents"] for row in document["rows"]}))
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_formatter("{x:.0f}")
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlabel("agents", fontsize=8)
        ax.set_ylabel("actions/s", fontsize=8)
        ax.set_title(model, fontsize=9)
    legend(figure, axes[0])
    return figure


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = options("batching", __doc__.partition("\n")[0])
    parser.add_argument("--agents", type=numbers, metavar="1,8", help="so many at once (default: 1,2,4,8,16,32,64)")
    asked = parser.parse_args(arguments)
    agents = asked.agents or list(_QUICK_AGENTS if asked.quick else _AGENTS)
    deliver(report(run(measure(agents, _QUICK if asked.quick else _Size()))), asked, show, draw)
    return 0


if __name__ == "__main__":
    sys.exit(program(main))
