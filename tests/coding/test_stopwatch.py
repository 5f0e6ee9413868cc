"""What time a sandbox has had."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits
from hudsim.coding.stopwatch import Stopwatch, Times, times_of
from tests.asyncrun import on_loop

S = 1_000_000_000


class Machine:
    """Whose time goes by as it is told."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.times: dict[str, tuple[int, int]] = {}
        self.watch = Stopwatch(self.read, clock=lambda: self.now_s)

    def read(self) -> Times:
        return dict(self.times)

    def goes_on(self, seconds: float, **grown: tuple[float, float]) -> float:
        """What each thread ran and stood in line [s] meanwhile → what they have had."""
        self.now_s += seconds
        for name, (ran, stood) in grown.items():
            before = self.times.get(name, (0, 0))
            self.times[name] = (before[0] + int(ran * S), before[1] + int(stood * S))
        return self.watch.look()


def test_who_sleeps_has_all_the_time_there_is() -> None:
    machine = Machine()
    assert machine.goes_on(0.5) == 0.5
    assert machine.goes_on(0.5, a=(0.0, 0.0)) == 1.0
    assert machine.watch.wall_s == 1.0


def test_who_runs_alone_has_it_too() -> None:
    assert Machine().goes_on(1.0, a=(1.0, 0.0)) == 1.0


def test_who_stands_in_line_behind_others_has_what_it_ran() -> None:
    machine = Machine()
    assert machine.goes_on(1.0, a=(0.25, 0.75)) == 0.25
    assert machine.goes_on(1.0, a=(0.25, 0.25)) == 1.0  # and slept for half of it


def test_who_stands_in_line_behind_itself_gains_nothing() -> None:
    crowd = {f"t{n}": (2 / 256, 1 - 2 / 256) for n in range(256)}  # on two processors
    assert Machine().goes_on(1.0, **crowd) == 1.0


def test_many_threads_on_many_processors_have_no_more_than_the_clock_says() -> None:
    assert Machine().goes_on(1.0, a=(1.0, 0.0), b=(1.0, 0.0), c=(0.5, 0.1)) == 1.0


def test_what_ended_or_began_meanwhile_is_no_matter() -> None:
    machine = Machine()
    machine.goes_on(1.0, a=(9.0, 9.0))
    machine.times = {"b": (S // 2, S // 2)}
    assert machine.goes_on(1.0) == 1.5


def ran(firsts: list[int | None]) -> int:
    return sum(task[0] for task in times_of(firsts).values())


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not say")
@on_loop
async def test_a_sandboxs_processes_are_seen_with_their_times() -> None:
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        sandbox = await box.sandbox()
        assert times_of([None]) == {}
        process = await sandbox.spawn(["python", "-c", "while True: pass"], fds=[0, 1, 2])
        before = ran([sandbox.pid, None])
        while ran([sandbox.pid]) < before + S // 10:  # noqa: ASYNC110 - the kernel rings no bell
            await asyncio.sleep(0.05)
        assert len(times_of([sandbox.pid])) >= 2
        process.signal(9)
        await process.wait()
