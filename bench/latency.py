"""Action → next observation, over loopback, between two processes: hudsim against its floor, in the same run.

The floor is a bare `websockets` + uvloop server that answers each action with one prepared buffer of the same
size as hudsim's frame: no contract, no codec, no simulator thread. Both are driven by turns, a few dozen round
trips each, so that whatever else the machine does falls on both.

    python -m hudsim.bench.latency [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import websockets
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import connect as ws_connect
from websockets.asyncio.server import ServerConnection, serve

from hudsim import __version__
from hudsim.contract import Contract
from hudsim.loop import run
from hudsim.loop.run import new_event_loop
from hudsim.robot.bridge import Array, Observation, RobotBridge
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
from hudsim.wire.codec import encode

__all__ = ["PAYLOADS", "StillBridge", "main", "measure"]

PAYLOADS: dict[str, tuple[int, int]] = {"state": (0, 0), "2x224": (2, 224), "2x480": (2, 480)}
"""Name → (cameras, side in pixels). Each has a state of 8 float32 beside them."""

_TURN = 25  # round trips before the other system's turn


class StillBridge(RobotBridge):
    """A world whose step and rendering cost nothing: what is measured is the way there and back.

    Observations are prepared arrays; each tick writes its number into the state.
    """

    def __init__(self, cameras: int = 0, side: int = 0) -> None:
        rng = np.random.default_rng(0)
        self._data: dict[str, Array] = {
            f"observation/camera{i}": rng.integers(0, 256, (1, side, side, 3), dtype=np.uint8) for i in range(cameras)
        }
        self._data["observation/state"] = np.zeros((1, 8), dtype=np.float32)
        observations = {
            name: {"role": "observation", "dtype": str(a.dtype), "shape": list(a.shape[1:])}
            | ({"type": "rgb"} if a.ndim == 4 else {})
            for name, a in self._data.items()
        }
        limits = {"min": [-3.0] * 8, "max": [3.0] * 8}
        action = {"role": "action", "dtype": "float32", "shape": [8], "limits": limits}
        self.contract = Contract.load(
            {"schema": "hudsim/1", "control_rate": 50.0, "features": {**observations, "action": action}}
        )

    def reset(self) -> str:
        self._data["observation/state"][:] = 0
        return "stay still"

    def step(self, action: Array) -> None:
        self._data["observation/state"] += 1

    def get_observation(self) -> Observation:
        return Observation(self._data, np.zeros(1, dtype=np.bool_))


@dataclass
class Row:
    """One system on one payload: round trips in nanoseconds."""

    system: str
    payload: str
    frame_bytes: int
    trips_ns: list[int] = field(default_factory=list)

    def quantiles_us(self) -> dict[str, float]:
        values = np.quantile(self.trips_ns, [0.5, 0.9, 0.99, 1.0]) / 1e3
        return dict(zip(("p50", "p90", "p99", "max"), (round(float(v), 1) for v in values), strict=True))


async def measure(payload: str, trips: int) -> list[Row]:
    """Round trips of the floor and of hudsim by turns, ``trips`` of each, after a warm-up of a tenth of them."""
    cameras, side = PAYLOADS[payload]
    spec = WorldSpec("hudsim.bench.latency:StillBridge", {"cameras": cameras, "side": side})
    async with RobotEndpoint.spawn(spec, mode="lockstep") as world:
        episode = await world.reset()
        async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
            heard = await robot.get_observation()
            size = sum(array.nbytes for array in heard.data.values()) + 700
            action = np.zeros(8, dtype=np.float32)

            async def hudsim_trip() -> None:
                await robot.send_action(action)
                await robot.get_observation()

            with _Floor(size) as port:
                async with ws_connect(
                    f"ws://127.0.0.1:{port}", compression=None, ping_interval=None, max_size=None
                ) as floor:
                    frame = encode({"actions": action, "obs_index": 1000})

                    async def floor_trip() -> None:
                        await floor.send(frame)
                        await floor.recv()

                    rows = [Row("websockets, one buffer", payload, size), Row("hudsim, socket", payload, size)]
                    await _by_turns([(rows[0], floor_trip), (rows[1], hudsim_trip)], trips)
        await world.result(episode.token)
    return rows


async def _by_turns(systems: list[tuple[Row, Callable[[], Awaitable[None]]]], trips: int) -> None:
    for row, trip in systems:
        for _ in range(max(10, trips // 10)):
            await trip()
        row.trips_ns.clear()
    for _ in range(0, trips, _TURN):
        for row, trip in systems:
            for _ in range(_TURN):
                began_ns = time.perf_counter_ns()
                await trip()
                row.trips_ns.append(time.perf_counter_ns() - began_ns)


class _Floor:
    """The bare server in a process of its own; its port while the context lasts."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> int:
        command = [sys.executable, "-m", "hudsim.bench.latency", "--floor", str(self._size)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(5)


async def _serve_floor(size: int) -> None:
    buffer = bytes(size)

    async def answer(ws: ServerConnection) -> None:
        async for _ in ws:
            await ws.send(buffer)

    async with serve(answer, "127.0.0.1", 0, compression=None, ping_interval=None, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


def report(rows: list[Row]) -> dict[str, Any]:
    """Everything as plain JSON: the machine, and a row a system and payload with its ratio to the floor's p50."""
    floors = {row.payload: row.quantiles_us()["p50"] for row in rows if row.system.startswith("websockets")}
    return {
        "bench": "latency",
        "hudsim": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}, {_cores()} cores",
        "versions": {"websockets": websockets.version.version, "numpy": np.__version__},
        "rows": [
            {
                "system": row.system,
                "payload": row.payload,
                "frame_bytes": row.frame_bytes,
                "trips": len(row.trips_ns),
                "us": row.quantiles_us(),
                "ratio_to_floor": round(row.quantiles_us()["p50"] / floors[row.payload], 2),
            }
            for row in rows
        ],
    }


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def show(document: dict[str, Any]) -> None:
    """The table."""
    table = Table(title=f"action → next observation, µs ({document['machine']}, Python {document['python']})")
    for heading in ("payload", "system", "p50", "p90", "p99", "max", "× floor"):
        table.add_column(heading, justify="left" if heading in ("payload", "system") else "right")
    for row in document["rows"]:
        us = row["us"]
        table.add_row(
            row["payload"],
            row["system"],
            *(f"{us[q]:.0f}" for q in ("p50", "p90", "p99", "max")),
            f"{row['ratio_to_floor']:.2f}",
        )
    Console().print(table)


async def _measure_all(payloads: list[str], trips: int) -> list[Row]:
    return [row for payload in payloads for row in await measure(payload, trips)]


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="hudsim bench latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few round trips: for its function, not its numbers")
    parser.add_argument("--payload", action="append", choices=list(PAYLOADS), help="only this one (may be repeated)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--floor", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.floor is not None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve_floor(options.floor))
        return 0
    rows = run(_measure_all(options.payload or list(PAYLOADS), 100 if options.quick else 3000))
    document = report(rows)
    show(document)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
