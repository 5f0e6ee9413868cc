"""Times one system's round trips: ``PYTHON play.py SYSTEM.py``, asked by lines of JSON. The standard library alone.

``{"payload": …}`` opens the system, once; ``{"trips": n, "budget_s": s}`` is one turn: so many round trips, fewer if
they take longer than the budget, after some that are not counted: what went cold meanwhile is warmed up by them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import platform
import runpy
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Meter", "main"]

Trip = Callable[[], Awaitable[Any]]

_WARM = 50  # trips
_FEWEST = 3  # trips in a turn
_UNCOUNTED = 2  # trips, after whatever else was done
_SETTLED_NS = 50_000_000
_SENT_AND_RECEIVED = struct.Struct("@120x2Q")  # of Linux's tcp_info


class Meter:
    """What the round trips cost: CPU nanoseconds of this process and of its children, bytes through its sockets."""

    def __init__(self) -> None:
        self._servers = _descendants()

    def read(self) -> list[int]:
        """``[own ns, servers' ns, bytes]`` so far. Elsewhere than on Linux only the first is known, the others 0."""
        return [time.process_time_ns(), sum(map(_cpu_ns, self._servers)), _socket_bytes()]


def _descendants() -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue  # gone meanwhile
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _cpu_ns(pid: int) -> int:
    """By the process's own CPU clock, whose id is made of its pid: see clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def _socket_bytes() -> int:
    """Payload bytes of TCP, both ways, as the kernel counts them."""
    total = 0
    for entry in Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ():
        try:
            if not str(entry.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as sock:
                if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
                    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SENT_AND_RECEIVED.size)
                    total += sum(_SENT_AND_RECEIVED.unpack(info))
        except OSError:
            continue  # the listing's own descriptor
    return total


async def _settle(trip: Trip) -> None:
    """Until caches are warm, and the scheduler has found each process its core, as in a loop that goes on."""
    end_ns = time.perf_counter_ns() + _SETTLED_NS
    while time.perf_counter_ns() < end_ns:
        await trip()


async def _turn(trip: Trip, trips: int, budget_s: float, meter: Meter) -> dict[str, Any]:
    await _settle(trip)
    before, taken_ns = meter.read(), list[int]()
    for _ in range(_UNCOUNTED):  # the meter took its time
        await trip()
    last_ns = time.perf_counter_ns()
    end_ns = last_ns + int(budget_s * 1e9)
    while len(taken_ns) < trips and (len(taken_ns) < _FEWEST or last_ns < end_ns):
        began_ns = time.perf_counter_ns()
        await trip()
        last_ns = time.perf_counter_ns()
        taken_ns.append(last_ns - began_ns)
    share = len(taken_ns) / (len(taken_ns) + _UNCOUNTED)
    cost = [round((now - then) * share) for now, then in zip(meter.read(), before, strict=True)]
    return {"ns": taken_ns, "client_ns": cost[0], "server_ns": cost[1], "socket_bytes": cost[2]}


@contextlib.contextmanager
def _serving(file: str) -> Iterator[Callable[..., int]]:
    """What starts the system's servers, while they last."""
    with contextlib.ExitStack() as stack:

        def serve(*words: object) -> int:
            pipe = subprocess.PIPE
            command = [sys.executable, file, *map(str, words)]
            process = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
            assert process.stdin is not None
            assert process.stdout is not None
            stack.callback(process.stdin.close)
            return int(process.stdout.readline())

        yield serve


async def _play(
    system: dict[str, Any], payload: dict[str, Any], serve: Callable[..., int], say: Callable[[dict[str, Any]], None]
) -> None:
    async with system["opened"](payload, serve) as trip:
        for _ in range(_WARM):
            await trip()
        meter = Meter()
        gc.collect()
        gc.freeze()  # what was loaded is not looked at again; what the trips leave is collected as ever
        say({"python": platform.python_version(), "versions": {name: version(name) for name in system["PACKAGES"]}})
        # The loop goes on between the turns: a peer's ping is answered.
        while line := await asyncio.to_thread(sys.stdin.readline):
            turn = json.loads(line)
            say(await _turn(trip, turn["trips"], turn["budget_s"], meter))


def main() -> None:
    """Serve the questions on stdin until they end. What the system itself prints goes to stderr.

    Under an interpreter that lacks the system, all there is to say is ``{"missing": MODULE}``.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        try:
            print(json.dumps(answer), file=answers, flush=True)
        except BrokenPipeError:  # whoever asks has ended; so has stdin, which the loop will see
            os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())

    if not (line := sys.stdin.readline()):
        return
    try:
        system = runpy.run_path(sys.argv[1], run_name="system")
    except ModuleNotFoundError as error:
        say({"missing": error.name})
        return
    with _serving(sys.argv[1]) as serve, asyncio.Runner(loop_factory=system.get("new_event_loop")) as runner:
        runner.run(_play(system, json.loads(line)["payload"], serve, say))


if __name__ == "__main__":
    main()
