"""What time a sandbox has had."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits
from hudsim.coding.cgroups import Controllers
from hudsim.coding.stopwatch import Stopwatch, Times, times_of
from tests.asyncrun import on_loop

S = 1_000_000_000


class Machine:
    """Whose time goes by as it is told."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran_ns = 0
        self.stood_ns: dict[str, int] = {}
        self.watch = Stopwatch(self.read, clock=lambda: self.now_s)

    def read(self) -> Times:
        return Times(self.ran_ns, dict(self.stood_ns))

    def goes_on(self, seconds: float, **grown: tuple[float, float]) -> float:
        """What each thread ran and stood in line [s] meanwhile → what they have had."""
        self.now_s += seconds
        for name, (ran, stood) in grown.items():
            self.ran_ns += int(ran * S)
            self.stood_ns[name] = self.stood_ns.get(name, 0) + int(stood * S)
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
    machine.stood_ns = {"b": S // 2}
    machine.ran_ns += S // 2
    assert machine.goes_on(1.0) == 1.5


def test_who_stands_in_line_behind_what_has_ended_gains_nothing() -> None:
    machine = Machine()
    machine.ran_ns += S  # by a chain of processes, none of which lives any more
    assert machine.goes_on(1.0, a=(0.0, 1.0), b=(0.0, 1.0)) == 1.0
    assert machine.watch.ran_s == 1.0


def test_a_look_that_failed_is_made_up_for_by_the_next() -> None:
    machine = Machine()
    read, machine.watch._read = machine.watch._read, failing
    machine.now_s, machine.ran_ns, machine.stood_ns = 1.0, S // 4, {"a": 3 * S // 4}
    with pytest.raises(OSError, match="no descriptor"):
        machine.watch.look()
    machine.watch._read = read
    assert machine.goes_on(1.0, a=(0.25, 0.75)) == 0.5


def test_until_there_is_something_to_go_by_the_clock_is_gone_by() -> None:
    machine = Machine()
    machine.watch = Stopwatch(failing, clock=lambda: machine.now_s)
    machine.watch._read = machine.read
    assert machine.goes_on(1.0, a=(0.25, 0.75)) == 1.0
    assert machine.goes_on(1.0, a=(0.25, 0.75)) == 1.25


def failing() -> Times:
    raise OSError("no descriptor")


# Links that run for 4 ms each, every one of them gone before anybody has looked twice.
_CHAIN = """
import os, time
while True:
    if os.fork():
        os._exit(0)
    end = time.process_time() + 0.004
    while time.process_time() < end:
        pass
"""


class WithoutGroups:
    def __init__(self, pid: int | None) -> None:
        self.pid, self.cgroups = pid, ()


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not say")
@pytest.mark.parametrize("script", ["while True: pass", _CHAIN])
@pytest.mark.parametrize("grouped", [True, False])
@on_loop
async def test_a_sandboxs_processes_are_seen_with_their_times(script: str, grouped: bool) -> None:
    if grouped and Controllers.found().version is None:
        pytest.skip("no control groups can be made here")
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        sandbox = await box.sandbox()
        seen = sandbox if grouped else WithoutGroups(sandbox.pid)
        assert times_of([WithoutGroups(None)]) == Times(0, {})
        running = asyncio.create_task(box.run(["python", "-c", script]))
        before = times_of([seen]).ran_ns
        while times_of([seen]).ran_ns < before + 3 * S // 10:  # noqa: ASYNC110 - the kernel rings no bell
            await asyncio.sleep(0.05)
        assert len(times_of([seen]).stood_ns) >= 1
        await box.end_all()
        await running
