"""Observations through shared memory: the same as through the socket, and nothing left of it whoever is killed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import read_card
from hudsim.errors import HudsimError, LinkLost, WireError
from hudsim.net import Address, connect
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.codec import decode, encode
from hudsim.wire.encoder import place_bytes
from tests.asyncrun import on_loop, within
from tests.robot.playing import play, zeros
from tests.robot.worlds import Cards, Draws, Grid, inline, spawned

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a memfd is Linux's")

CAMERAS: dict[str, Any] = {"width": 160, "height": 120, "cameras": 2}
CAMERA = "observation/camera0"


@asynccontextmanager
async def joined(world: RobotEndpoint, *, seed: int = 0, shared: bool = True) -> AsyncIterator[tuple[RobotClient, str]]:
    """A client that has claimed a new episode, and its token."""
    episode = await world.reset(seed=seed)
    where = world.capability()
    async with await RobotClient.connect(where, token=episode.token, shared_memory=shared) as robot:
        yield robot, episode.token


@pytest.mark.parametrize("made", [inline, spawned])
@on_loop
async def test_what_is_seen_is_the_same_either_way(made: Any) -> None:
    async with made(**CAMERAS) as world:
        seen = {}
        for shared, transport in ((True, "shm"), (False, "socket")):
            async with joined(world, seed=7, shared=shared) as (robot, token):
                seen[transport] = [
                    {name: array.copy() for name, array in heard.data.items()} for heard in await play(robot, 12)
                ]
                assert robot.transport == transport
            record = await world.result(token)
            assert (record["ticks"], record["by_memory"]) == (12, 13 if shared else 0)
    for one, other in zip(seen["shm"], seen["socket"], strict=True):
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name])


@on_loop
async def test_an_observation_that_is_kept_stays_as_it_was_seen() -> None:
    """A policy that keeps all that it sees takes up the memory; what comes then comes through the socket."""
    async with spawned(**CAMERAS) as world:
        async with joined(world) as (robot, token):
            seen = await play(robot, 40)
        record = await world.result(token)
    assert [read_card(heard.data[CAMERA])[1] for heard in seen] == list(range(41))
    assert 4 <= record["by_memory"] < 41


@on_loop
async def test_first_and_last_observations_that_are_kept_stay_too() -> None:
    """They are of other kinds: with a prompt (here a long one), and with a record."""
    kept: list[tuple[int, Any]] = []
    async with (
        spawned(max_ticks=3, **CAMERAS) as world,
        await RobotClient.connect(world.capability(), claim=False) as robot,
    ):
        for _ in range(4):
            episode = await world.reset(prompt="read " * 1000)
            await robot.claim(episode.token)
            seen = await play(robot, 10)
            kept += [(heard.index, heard.data[CAMERA]) for heard in (seen[0], seen[-1])]
            del seen
            await world.result(episode.token)
    assert [index for index, _ in kept] == [0, 3] * 4
    assert [read_card(image)[1] for _, image in kept] == [0, 3] * 4


@on_loop
async def test_what_a_policy_thinks_about_in_realtime_stays_as_it_was_seen() -> None:
    """With a chunk under way, observations tell of it, and are of another kind again."""
    async with spawned(mode="realtime", rate_hz=200.0, **CAMERAS) as world, joined(world) as (robot, _):
        heard = await robot.get_observation()
        for _ in range(15):
            await robot.send_chunk(zeros(robot, 40))
            heard = await robot.get_observation()
            await asyncio.sleep(0.03)
            assert read_card(heard.data[CAMERA])[1] == heard.index


@on_loop
async def test_every_slot_has_memory_of_its_own() -> None:
    async with spawned(Cards, num_envs=4, **CAMERAS) as world:
        slots = set()

        async def one(seed: int) -> None:
            async with joined(world, seed=seed) as (robot, token):
                cards = [read_card(heard.data[CAMERA]) for heard in await play(robot, 15)]
                assert cards == [(cards[0][0], tick) for tick in range(16)]
                slots.add(cards[0][0])
            assert (await world.result(token))["by_memory"] > 0

        await asyncio.gather(*(one(seed) for seed in range(4)))
        assert slots == {0, 1, 2, 3}


@on_loop
async def test_what_a_slow_policy_skips_in_realtime_takes_up_no_memory() -> None:
    async with spawned(mode="realtime", rate_hz=200.0, **CAMERAS) as world:
        async with joined(world) as (robot, token):
            heard = await robot.get_observation()
            while heard.index < 300:
                await robot.send_chunk(zeros(robot, 40))
                await asyncio.sleep(0.02)
                heard = await robot.get_observation()
            await robot.end("max_steps")
            while not heard.over:
                heard = await robot.get_observation()
            skipped = robot.skipped
        record = await world.result(token)
    assert skipped > 20
    assert record["by_memory"] == record["ticks"] + 1


@on_loop
async def test_large_actions_go_the_other_way_through_memory_too() -> None:
    async with inline(Grid) as world, joined(world) as (robot, _):
        rng = np.random.default_rng(0)
        heard = await robot.get_observation()
        for _ in range(20):
            action = rng.random((80, 80), dtype=np.float32)
            frame = robot._session.actions(action, episode=robot.episode, obs_index=heard.index)
            assert len(frame) < 400
            await robot._send(frame)
            heard = await robot.get_observation()
            np.testing.assert_array_equal(heard.data["map"], action)
            assert heard.data["sum"][0] == action.sum(dtype=np.float64)


@on_loop
async def test_an_image_that_is_drawn_where_the_agent_reads_is_written_once() -> None:
    """The bridge notes for each image whether it was asked for in shared memory, and shows which in the next state."""
    async with inline(Draws) as world:
        for shared in (True, False, True):
            async with joined(world, shared=shared) as (robot, token):
                for tick, heard in enumerate(await play(robot, 10)):
                    assert (heard.data["image"] == tick).all()
                    assert heard.data["lent"][0] == (shared and tick > 0)
            await world.result(token)


@on_loop
async def test_room_that_a_bridge_asks_for_and_does_not_show_is_not_lost() -> None:
    """Then what it does show finds no room in that page, and comes through the socket."""
    async with inline(Draws, show_every=2) as world:
        async with joined(world) as (robot, token):
            heard = await robot.get_observation()
            for tick in range(1, 101):
                await robot.send_action(zeros(robot))
                heard = await robot.get_observation()
                assert (heard.data["image"] == tick).all()
        assert (await world.result(token))["by_memory"] == 51


@on_loop
async def test_a_peer_that_does_not_ask_for_memory_gets_its_arrays_in_the_frames() -> None:
    async with inline(autostart=True, **CAMERAS) as world:
        for claim in ({"claim": None}, {"claim": None, "accept": {"protocol": "hudsim/1"}}):
            link = await connect(Address.parse(world.capability().url))
            greeting = decode(_bytes(await link.receive()))
            assert greeting["shm"]["pid"] == os.getpid()
            await link.send(encode(claim))
            assert read_card(decode(_bytes(await link.receive()))[CAMERA])[1] == 0
            await link.close()


@on_loop
async def test_a_place_that_is_none_ends_that_agent_alone_and_in_words() -> None:
    async with inline(Cards, num_envs=2, **CAMERAS) as world, joined(world) as (good, _), joined(world) as (bad, _):
        await good.get_observation()
        await bad.get_observation()
        ring = bad._session.ring
        assert ring is not None
        page = ring.back.take()
        frame = encode({"actions": np.zeros((4096, 5), np.float32), "episode": bad.episode}, page)
        place = place_bytes(ring.offer["size"] - 64)
        at = frame.index(b"\xc4\x04data") + 6
        await bad._send(frame[:at] + place + frame[at + len(place) :])
        with pytest.raises(WireError, match="in shared memory"):
            await bad.get_observation()
        await good.send_action(zeros(good))
        assert read_card((await good.get_observation()).data[CAMERA])[1] == 1


# Kills -----------------------------------------------------------------------------------------------------------

_AGENT = """
import asyncio, sys
import numpy as np
from hudsim.robot.client import RobotClient
async def main():
    url, token, shared = sys.argv[1:]
    robot = await RobotClient.connect(url, token=token, shared_memory=shared == "True")
    kept = [await robot.get_observation()]
    print(robot.transport, flush=True)
    action = np.zeros(robot.contract.action.shape, np.float32)
    while True:
        await robot.send_action(action)
        kept = [*kept[-2:], await robot.get_observation()]
asyncio.run(main())
"""


async def _agent(world: RobotEndpoint, token: str, *, shared: bool) -> asyncio.subprocess.Process:
    """A process that plays the episode of ``token`` for ever, once it has begun."""
    command = [sys.executable, "-c", _AGENT, world.capability().url, token, str(shared)]
    agent = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert agent.stdout is not None
    assert (await agent.stdout.readline()).decode().strip() == ("shm" if shared else "socket")
    return agent


def held(pid: int) -> tuple[int, int]:
    """A process's open files and its maps of shared memory."""
    maps = Path(f"/proc/{pid}/maps").read_text().count("memfd:hudsim-frames")
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), maps


async def until_held(pid: int, most: tuple[int, int]) -> None:
    async with asyncio.timeout(5.0):
        while not all(now <= then for now, then in zip(held(pid), most, strict=True)):
            gc.collect()
            await asyncio.sleep(0.02)


def _bytes(frame: bytes | str) -> bytes:
    assert isinstance(frame, bytes)
    return frame


def _pid(world: RobotEndpoint) -> int:
    inner: Any = world._world
    return int(inner._process._popen.pid)


@pytest.mark.parametrize("shared", [True, False])
@on_loop
async def test_an_agent_that_is_killed_leaves_nothing_in_the_world(shared: bool) -> None:
    async with spawned(**CAMERAS) as world:
        await world.start()
        before = None
        for _ in range(3):
            episode = await world.reset(seed=0)
            agent = await _agent(world, episode.token, shared=shared)
            await asyncio.sleep(0.1)
            agent.kill()
            await agent.wait()
            await world.result(episode.token)
            await until_held(_pid(world), (before or held(_pid(world))[0], 0))
            before = before or held(_pid(world))[0]


@on_loop
async def test_a_world_that_is_killed_leaves_nothing_in_the_agent_but_what_it_keeps() -> None:
    async with spawned(**CAMERAS) as world:
        await world.start()
        before = held(os.getpid())
        for _ in range(3):
            async with joined(world) as (robot, _):
                seen = await play(robot, 3)
                os.kill(_pid(world), signal.SIGKILL)
                with pytest.raises(LinkLost):
                    await play(robot, 10_000, first=seen[-1])
            assert read_card(seen[-1].data[CAMERA])[1] == 3  # what it keeps can be read still
            del seen, robot
            await until_held(os.getpid(), (before[0] + 1, before[1]))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("shared", [True, False])
def test_ten_thousand_ticks_and_fifty_kills_leave_files_maps_and_memory_as_before(shared: bool) -> None:
    within(350.0, ticks_and_kills(shared))


async def ticks_and_kills(shared: bool) -> None:
    rng = random.Random(0)
    async with spawned(**CAMERAS) as world:
        await _ticks(world, 1000, shared=shared)
        files, memory = held(os.getpid()), _resident(os.getpid())
        await _ticks(world, 10_000, shared=shared)
        theirs = held(_pid(world))
        for number in range(50):
            episode = await world.reset(seed=number)
            agent = await _agent(world, episode.token, shared=shared)
            await asyncio.sleep(rng.random() * 0.05)
            if number % 2:
                agent.kill()
            else:
                os.kill(_pid(world), signal.SIGKILL)  # the agent ends by itself then
            async with asyncio.timeout(10.0):
                await agent.wait()
            with contextlib.suppress(HudsimError):
                await world.result(episode.token)
            await until_held(os.getpid(), files)
        await _ticks(world, 10, shared=shared)
        await until_held(_pid(world), theirs)
        assert _resident(os.getpid()) < memory + (32 << 20)


async def _ticks(world: RobotEndpoint, count: int, *, shared: bool) -> None:
    async with joined(world, shared=shared) as (robot, token):
        heard = await robot.get_observation()
        for _ in range(count):
            await robot.send_action(zeros(robot))
            heard = await robot.get_observation()
        assert read_card(heard.data[CAMERA])[1] == count % 65536
    assert (await world.result(token))["by_memory"] == (count + 1 if shared else 0)


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
