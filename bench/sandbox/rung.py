"""``Rung``: so many workspaces at once, again and again: how long each thing takes, what fails, what is left."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hudsim.bench.sandbox.floor import bare
from hudsim.bench.sandbox.host import Host, memory_bytes
from hudsim.coding import SSHClient, Workspace
from hudsim.errors import ConnectError, HudsimError
from hudsim.loop.histogram import Histogram

__all__ = ["PHASES", "Rung", "climb"]

PHASES = ("bare", "start", "warm", "open files", "write", "read", "stop")
"""``bare``: the floor. ``start``: until the first command's result is there. ``warm``: a command after that.
``open files``: SFTP, until a first listing. ``write``, ``read``: 1 MiB over SFTP. ``stop``: until all of it is gone."""

STAGES = ("room", "connect", "first command")
"""Of ``start``: folder, user id and keys; SSH's handshake; the command, for which the sandbox is brought up."""

_MIB = bytes(range(256)) * 4096
_WARM = 4
_GONE_S, _LOOK_S = 2.0, 0.1
_TICK_S = 0.005

_mine: ContextVar[_Seat | None] = ContextVar("hudsim_bench_seat", default=None)


@dataclass
class Rung:
    """
    times_s
        Of each phase and each stage of the start, in seconds, all that went well.
    failures
        In words, and how often.
    left
        What is still there two seconds after the last has stopped; all zero if nothing is.
    stall
        By how much the event loop was late for a timer, in nanoseconds.
    memory_bytes
        Of all processes, when all workspaces of a round were up; the most of all rounds.
    """

    width: int
    creates: int = 0
    times_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: Counter[str] = field(default_factory=Counter)
    left: dict[str, int] = field(default_factory=dict)
    stall: Histogram = field(default_factory=Histogram)
    memory_bytes: int = 0

    @property
    def well(self) -> bool:
        """Nothing has failed, and nothing is left."""
        return not self.failures and not any(self.left.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "width": self.width,
            "creates": self.creates,
            "failures": dict(self.failures),
            "left": self.left,
            "ms": {name: _quantiles_ms(self.times_s[name]) for name in (*PHASES, *STAGES) if self.times_s[name]},
            "stall_ms": {q: round(us / 1e3, 2) for q, us in (self.stall.summary_us() or {}).items()},
            "memory_mib": round(self.memory_bytes / (1 << 20), 1),
        }


async def climb(width: int, creates: int) -> Rung:
    """``width`` workspaces at once until there were at least ``creates``, beside as many bare bubblewraps."""
    rung, workspace = Rung(width), Workspace()
    workspace.serve(_mine.get)
    await workspace.start()
    try:
        await _round(Rung(1), workspace)  # what the first one of a process costs more
        before = await asyncio.to_thread(Host)
        last = None
        while rung.creates < creates:
            rung.times_s["bare"] += await bare(width)
            async with _timer(rung.stall):
                last = await _round(rung, workspace)
        rung.left = await _left(before)
        rung.left["keys"] = int(last is not None and await last.is_admitted())
    finally:
        await workspace.stop()
    return rung


async def _round(rung: Rung, workspace: Workspace) -> _Seat:
    seats = [_Seat(workspace, rung) for _ in range(rung.width)]
    rung.creates += len(seats)
    try:
        await _phase("start", seats)
        rung.memory_bytes = max(rung.memory_bytes, await asyncio.to_thread(memory_bytes))
        for phase in ("warm",) * _WARM:
            await _phase(phase, seats)
        for phase in ("open files", "write", "read"):
            await _phase(phase, seats)
    finally:
        await _phase("stop", seats)
    return seats[-1]


async def _phase(name: str, seats: list[_Seat]) -> None:
    await asyncio.gather(*(seat.do(name) for seat in seats))


class _Seat:
    """One workspace of a round, and its agent."""

    def __init__(self, workspace: Workspace, rung: Rung) -> None:
        self._workspace, self._rung = workspace, rung
        self._client: SSHClient | None = None
        self._binding: dict[str, Any] = {}
        self._failed = False

    async def do(self, phase: str) -> None:
        """Of one that has failed, only the end."""
        if self._failed and phase != "stop":
            return
        _mine.set(self)  # of this task alone
        work = {"start": self._start, "warm": self._warm, "stop": self._stop}
        began_s = time.perf_counter()
        try:
            await (work[phase]() if phase in work else self._files(phase))
        except (HudsimError, OSError, TimeoutError) as error:
            self._failed = True
            self._rung.failures[f"{phase}: {type(error).__name__}: {error}"[:200]] += 1
        else:
            self._rung.times_s[phase].append(time.perf_counter() - began_s)

    async def is_admitted(self) -> bool:
        """Whether its key still opens something."""
        try:
            await (await SSHClient.connect(self._workspace.capability("shell"), self._binding)).close()
        except ConnectError:
            return False
        return True

    async def _start(self) -> None:
        began_s = time.perf_counter()
        self._binding = (await self._workspace.bindings("shell"))["shell"]
        made_s = time.perf_counter()
        self._client = await SSHClient.connect(self._workspace.capability("shell"), self._binding, timeout_s=60)
        connected_s = time.perf_counter()
        await self._warm()
        for stage, seconds in zip(
            STAGES, (made_s - began_s, connected_s - made_s, time.perf_counter() - connected_s), strict=True
        ):
            self._rung.times_s[stage].append(seconds)

    async def _warm(self) -> None:
        assert self._client is not None
        done = await self._client.run("echo up")
        if (done.code, done.stdout) != (0, b"up\n"):
            raise OSError(f"a command ended with {done.code}: {done.stderr.decode(errors='replace')}")

    async def _files(self, phase: str) -> None:
        assert self._client is not None
        if phase == "open files":
            await self._client.list()
        elif phase == "write":
            await self._client.write("file", _MIB)
        elif await self._client.read("file") != _MIB:
            raise OSError("another file was read than was written")

    async def _stop(self) -> None:
        if self._client is not None:
            await self._client.close()
        await self._workspace.leave(self)


async def _left(before: Host) -> dict[str, int]:
    """What is left when all had the time to go."""
    for _ in range(int(_GONE_S / _LOOK_S)):
        if not any((await asyncio.to_thread(before.left)).values()):
            break
        await asyncio.sleep(_LOOK_S)
    return await asyncio.to_thread(before.left)


@contextlib.asynccontextmanager
async def _timer(stall: Histogram) -> AsyncIterator[None]:
    """How late the event loop is, as long as this lasts."""

    async def tick() -> None:
        while True:
            due_s = time.perf_counter() + _TICK_S
            await asyncio.sleep(_TICK_S)
            stall.record(int((time.perf_counter() - due_s) * 1e9))

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait({ticking})


def _quantiles_ms(times_s: list[float]) -> dict[str, float]:
    values = np.quantile(times_s, [0.5, 0.95, 0.99, 1.0]) * 1e3
    return dict(zip(("p50", "p95", "p99", "max"), (round(float(v), 2) for v in values), strict=True))
