"""Processes that are killed, hang or cannot start: typed ends within a second or two, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import LinkLost, SimFailed, SimHung, UnknownName, UsageError
from hudsim.net import Address, Link, connect
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
from tests.asyncrun import on_loop
from tests.net.http import get
from tests.robot.playing import joined, play, zeros
from tests.robot.worlds import BadCap, Card, Dies, Forks, GilHang, SlowStep, inline, spawned, spec

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def children(parent: int) -> list[int]:
    """The process ids of all live children of ``parent``."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def until_gone(pid: int, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not gone(pid):  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0.02)


async def started(world: RobotEndpoint) -> int:
    """Start a spawned world; its process id."""
    await world.start()
    inner: Any = world._world
    pid: int = inner._process._popen.pid
    return pid


@on_loop
async def test_a_killed_sim_process_ends_every_wait_and_the_next_reset_makes_a_new_one() -> None:
    world = spawned()
    pid = await started(world)
    async with joined(world, seed=1) as (robot, episode):
        await play(robot, 3)
        waiting = asyncio.create_task(robot.get_observation())
        await asyncio.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(3.0):
            with pytest.raises(LinkLost):
                await waiting
            record = await world.result(episode.token)
        assert (record["end"], record["is_error"]) == ("aborted(sim_failed)", True)
        assert "SIGKILL" in record["message"]
        assert (record["seed"], record["prompt"]) == (1, "read the card")
    async with joined(world, seed=2) as (robot, _):
        assert Card.read((await robot.get_observation()).data["observation/camera0"]).seed == 2
    await world.stop()
    assert gone(pid)


@on_loop
async def test_a_simulator_that_crashes_natively_is_sim_failed_with_its_exit_code() -> None:
    async with spawned(Dies) as world, joined(world) as (robot, episode):
        with pytest.raises(LinkLost):
            await play(robot, 5)
        record = await world.result(episode.token)
        assert record["end"] == "aborted(sim_failed)"
        assert "exit code 11" in record["message"]


@on_loop
async def test_a_hang_in_native_code_is_sim_hung_and_the_process_is_replaced() -> None:
    world = spawned(watchdog_s=0.5, faults={"hang_at": 3})
    pid = await started(world)
    async with joined(world) as (robot, episode):
        async with asyncio.timeout(6.0):
            with pytest.raises(SimHung, match="watchdog"):
                await play(robot, 5)
            record = await world.result(episode.token)
        assert (record["end"], record["is_error"]) == ("aborted(sim_hung)", True)
    await until_gone(pid, 3.0)
    async with joined(world) as (robot, _):
        assert len(await play(robot, 2)) == 3
    await world.stop()


@on_loop
async def test_a_hang_that_holds_the_gil_is_ended_from_outside() -> None:
    world = spawned(GilHang, watchdog_s=0.5)
    pid = await started(world)
    async with joined(world) as (robot, episode):
        async with asyncio.timeout(8.0):
            with pytest.raises(LinkLost):
                await play(robot, 5)
            record = await world.result(episode.token)
        assert record["end"] == "aborted(sim_hung)"
    await until_gone(pid, 3.0)
    await world.stop()


@on_loop
async def test_a_hanging_world_is_stopped_all_the_same() -> None:
    world = spawned(GilHang)
    pid = await started(world)
    async with joined(world) as (robot, _):
        for action in range(3):
            await robot.get_observation()
            await robot.send_action(robot.contract.example(action)[1])
        async with asyncio.timeout(6.0):
            await world.stop()
        assert gone(pid)


PARENT = """
import asyncio, json, sys
from hudsim.loop import run
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec

async def main():
    async with RobotEndpoint.spawn(WorldSpec(sys.argv[1], json.loads(sys.argv[2]))) as world:
        await world.reset(seed=0)
        print(json.dumps(world.capability().url), flush=True)
        await asyncio.sleep(60)

try:
    run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


async def drained(link: Link) -> None:
    while True:
        await link.receive()


@contextmanager
def parent_of(world: WorldSpec) -> Iterator[tuple[subprocess.Popen[str], Address, int]]:
    """A process that has spawned ``world``, its address, and the sim process's id."""
    command = [sys.executable, "-c", PARENT, world.target, json.dumps(world.args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            address = Address.parse(json.loads(parent.stdout.readline()))
            (child,) = children(parent.pid)
            yield parent, address, child
        finally:
            parent.kill()


@on_loop
async def test_the_sim_process_dies_with_its_parent_and_its_port_is_free() -> None:
    with parent_of(spec()) as (parent, address, child):
        link = await connect(address)
        parent.kill()
        async with asyncio.timeout(2.0):
            with pytest.raises(LinkLost):
                await drained(link)
        await until_gone(child, 2.0)
        async with spawned(port=address.port) as again:
            assert Address.parse(again.capability().url).port == address.port


@on_loop
async def test_the_sim_process_dies_with_its_parent_even_while_it_holds_the_gil() -> None:
    with parent_of(spec(GilHang)) as (parent, address, child):
        robot = await RobotClient.connect(address.url)
        for tick in range(3):
            await robot.get_observation()
            await robot.send_action(robot.contract.example(tick)[1])
        parent.kill()
        await until_gone(child, 2.0)
        await robot.close()


@on_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("clients", [0, 2])
async def test_a_signal_ends_the_parent_the_sim_process_and_the_port_within_seconds(
    number: signal.Signals, clients: int
) -> None:
    with parent_of(spec()) as (parent, address, child):
        links = [await connect(address) for _ in range(clients)]
        began = time.monotonic()
        parent.send_signal(number)
        assert await asyncio.to_thread(parent.wait, 10) == 130
        await until_gone(child, 2.0)
        assert time.monotonic() - began < 5.0
        for link in links:
            with pytest.raises(LinkLost):
                await drained(link)


@on_loop
async def test_a_sim_process_told_to_end_ends_with_code_0() -> None:
    world = spawned()
    pid = await started(world)
    os.kill(pid, signal.SIGTERM)
    async with asyncio.timeout(3.0):
        failure = await world.wait()
    assert "exit code 0" in str(failure)
    await world.stop()


@on_loop
async def test_what_goes_wrong_while_a_world_is_made_is_raised_by_start() -> None:
    before = children(os.getpid())
    with pytest.raises(SimFailed, match="RuntimeError: no such robot here"):
        await spawned(BadCap).start()
    with pytest.raises(UsageError, match="no module"):
        await RobotEndpoint.spawn("no_such_module:Thing").start()
    with pytest.raises(UnknownName, match="did you mean 'TestCardBridge'"):
        await RobotEndpoint.spawn("hudsim.bridges.testcard:TestCardBrige").start()
    assert children(os.getpid()) == before


@on_loop
async def test_a_world_that_does_not_come_up_is_given_up() -> None:
    before = children(os.getpid())
    target = f"{Path(__file__).parent / 'slow_import.py'}:Slow"
    world = RobotEndpoint.spawn(WorldSpec(target), start_timeout_s=1.0)
    with pytest.raises(SimHung, match="did not come up within 1 s"):
        await world.start()
    assert children(os.getpid()) == before


@on_loop
async def test_start_and_stop_are_idempotent_and_leave_no_process() -> None:
    before = children(os.getpid())
    world = spawned()
    pid = await started(world)
    await world.start()
    assert set(children(os.getpid())) == {*before, pid}
    await world.stop()
    await world.stop()
    assert gone(pid)


@on_loop
async def test_a_model_that_holds_the_loop_of_its_own_process_holds_up_nobody_else() -> None:
    """An inference of seconds, then a second agent and a health check at the world meanwhile."""
    async with spawned(num_envs=2) as world:
        one = await world.reset(seed=1)
        address = Address.parse(world.capability().url)
        robot = await RobotClient.connect(world.capability(), token=one.token)
        await robot.get_observation()
        code = (
            "import asyncio, sys, time\n"
            "from hudsim.robot.client import RobotClient\n"
            "async def main():\n"
            "    robot = await RobotClient.connect(sys.argv[1], token=sys.argv[2])\n"
            "    seen = await robot.get_observation()\n"
            "    print('thinking', flush=True)\n"
            "    time.sleep(3.0)\n"
            "    await robot.send_action(robot.contract.example()[1])\n"
            "    print((await robot.get_observation()).index, flush=True)\n"
            "    await robot.close()\n"
            "asyncio.run(main())\n"
        )
        two = await world.reset(seed=2)
        thinker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, address.url, two.token, stdout=asyncio.subprocess.PIPE
        )
        assert thinker.stdout is not None
        assert await thinker.stdout.readline() == b"thinking\n"
        began = time.monotonic()
        assert (await get(address, "/healthz"))[0] == 200
        await (await connect(address)).close()
        await robot.send_action(robot.contract.example()[1])
        assert (await robot.get_observation()).index == 1
        assert time.monotonic() - began < 2.5, "nobody waited for the one that thinks"
        assert await thinker.stdout.readline() == b"1\n"
        await thinker.wait()
        await robot.close()


def group_of(leader: int) -> list[int]:
    """The living processes of ``leader``'s process group, but not itself."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            if int(fields[2]) == leader and pid != leader and fields[0] != "Z":
                found.append(pid)
    return found


@on_loop
@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_what_a_simulator_forked_dies_with_it(how: str) -> None:
    world = spawned(Forks)
    pid = await started(world)
    async with joined(world) as (robot, _):
        await play(robot, 2)
        (forked,) = group_of(pid)
        if how == "killed":
            waiting = asyncio.create_task(robot.get_observation())
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(3.0):
                with pytest.raises(LinkLost):
                    await waiting
        else:
            async with asyncio.timeout(3.0):
                await world.stop()
        await until_gone(forked, 3.0)
    await world.stop()


@on_loop
async def test_an_inline_world_whose_step_does_not_come_back_is_left_behind() -> None:
    world = inline(SlowStep, step_for_s=5.0)
    await world.start()
    async with joined(world) as (robot, _):
        await play(robot, 1)
        await robot.send_action(zeros(robot))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(4.5):
            await world.stop()


@on_loop
async def test_an_agent_that_leaves_a_hanging_world_leaves_nothing_behind() -> None:
    async with inline(SlowStep, step_for_s=1.5, watchdog_s=0.4) as world:
        async with joined(world) as (robot, episode):
            await play(robot, 1)
            await robot.send_action(zeros(robot))
            await asyncio.sleep(0.1)
        async with asyncio.timeout(4.0):
            record = await world.result(episode.token)
            assert record["end"] == "aborted(sim_hung)"
            while any(task.get_name() == "hudsim-outbox" for task in asyncio.all_tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
