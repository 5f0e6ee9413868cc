"""Where a step waits for its action, the sim thread reads that itself; all else is the loop thread's, as ever."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import numpy as np
import pytest
import websockets

from hudsim.bridges.testcard import read_card
from hudsim.errors import ContractError, LinkLost, PolicyDeadline, ShuttingDown, WireError
from hudsim.net.frames import BINARY, apply_mask, head
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.codec import decode, encode
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play, zeros
from tests.robot.worlds import Cards, inline

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="epoll is Linux's")

CAMERA = "observation/camera0"


def lent(world: RobotEndpoint) -> list[bool]:
    """Of each seat, whether the loop thread does not read its link."""
    inner: Any = world._world
    return [seat._link._stream.inlet.away for seat in inner._server._seats]


async def until(world: RobotEndpoint, *expected: bool) -> None:
    async with asyncio.timeout(5.0):
        while lent(world) != list(expected):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def framed(robot: RobotClient, action: Any) -> bytes:
    """One action as the bytes of its WebSocket frame."""
    payload = robot._session.actions(action, episode=robot.episode, obs_index=robot._index)
    key = b"\x01\x02\x03\x04"
    return head(BINARY, len(payload), masked=True) + key + apply_mask(payload, key)


def socket_of(robot: RobotClient) -> Any:
    return robot._link._stream.transport


@pytest.mark.parametrize("mode", ["lockstep", "paced"])
@on_loop
async def test_the_sim_thread_reads_while_an_episode_is_played_as_usual(mode: str) -> None:
    async with inline(mode=mode, rate_hz=200.0) as world, joined(world) as (robot, episode):
        seen = await play(robot, 20)
        assert lent(world) == [True]
        assert [read_card(heard.data[CAMERA])[1] for heard in seen] == list(range(21))
        await robot.end("max_steps")
        assert (await robot.get_observation()).over
        await until(world, False)
        assert (await world.result(episode.token))["ticks"] == 20
        again = await world.reset(seed=2)
        await robot.claim(again.token)
        assert len(await play(robot, 5)) == 6


@on_loop
async def test_slots_are_read_side_by_side() -> None:
    async with inline(Cards, num_envs=4) as world:

        async def one(seed: int) -> None:
            async with joined(world, seed=seed) as (robot, _):
                ticks = [read_card(heard.data[CAMERA])[1] for heard in await play(robot, 30)]
                assert ticks == list(range(31))

        await asyncio.gather(*(one(seed) for seed in range(4)))


@on_loop
async def test_an_action_in_pieces_or_with_another_behind_it_is_the_loop_threads() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await play(robot, 3)
        frame = framed(robot, zeros(robot))
        for piece in (frame[:1], frame[1:7], frame[7:]):
            socket_of(robot).write(piece)
            await asyncio.sleep(0.02)
        heard = await robot.get_observation()
        assert read_card(heard.data[CAMERA])[1] == 4
        await play(robot, 3, first=heard)
        assert lent(world) == [True]
        socket_of(robot).write(framed(robot, zeros(robot)) * 2)
        with pytest.raises(WireError, match=r"second action|expected one for the newest"):
            await play(robot, 3)


@pytest.mark.parametrize(
    ("action", "error"), [(np.full(5, np.nan, np.float32), ContractError), (np.zeros(6, np.float32), ContractError)]
)
@on_loop
async def test_an_action_that_breaks_the_contract_is_refused_as_ever(action: Any, error: type[Exception]) -> None:
    async with inline() as world, joined(world) as (robot, _):
        await play(robot, 3)
        assert lent(world) == [True]
        await robot.send_action(action)
        with pytest.raises(error):
            await robot.get_observation()


@on_loop
async def test_an_action_for_an_observation_to_come_is_refused_as_ever() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await play(robot, 3)
        await robot.send_action(zeros(robot), obs_index=100)
        with pytest.raises(WireError, match="obs_index: got 100"):
            await robot.get_observation()


@on_loop
async def test_a_ping_in_between_is_answered() -> None:
    async with (
        inline(autostart=True) as world,
        websockets.connect(world.capability().url, compression=None, ping_interval=None) as ws,
    ):
        greeting = decode(bytes(await ws.recv()))  # type: ignore[arg-type]
        shape = greeting["contract"]["features"]["action"]["shape"]
        await ws.send(encode({"claim": None, "accept": {"protocol": "hudsim/1"}}))
        for _ in range(5):
            for _ in range(3):
                meta = decode(bytes(await ws.recv()))["meta"]  # type: ignore[arg-type]
                action = {"actions": np.zeros(shape, np.float32), "episode": meta["episode"]}
                await ws.send(encode({**action, "obs_index": meta["obs_index"]}))
            async with asyncio.timeout(5.0):
                await (await ws.ping())


@on_loop
async def test_an_agent_that_stops_acting_meets_its_deadline() -> None:
    async with inline(timing={"policy_deadline_s": 0.3}) as world, joined(world) as (robot, episode):
        await play(robot, 5)
        assert lent(world) == [True]
        with pytest.raises(PolicyDeadline):
            await robot.get_observation()
        assert (await world.result(episode.token))["ticks"] == 5


@pytest.mark.parametrize("how", ["cut", "closed"])
@on_loop
async def test_an_agent_that_goes_is_noticed(how: str) -> None:
    async with inline() as world:
        async with joined(world) as (robot, episode):
            await play(robot, 5)
            assert lent(world) == [True]
            if how == "cut":
                robot._link.reset()
            else:
                await robot.close()
        began_s = time.monotonic()
        await until(world)
        assert time.monotonic() - began_s < 1.0
        record = await world.result(episode.token)
        assert record["end"] == ("aborted(policy_lost)" if how == "cut" else "max_steps")


@on_loop
async def test_while_a_step_takes_long_the_loop_thread_reads() -> None:
    async with inline(step_s=0.5) as world, joined(world) as (robot, _):
        heard = await robot.get_observation()
        for _ in range(2):
            await robot.send_action(zeros(robot))
            await until(world, False)
            heard = await robot.get_observation()
        assert read_card(heard.data[CAMERA])[1] == 2


@on_loop
async def test_a_server_that_stops_says_so_to_those_whose_links_are_lent() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await play(robot, 5)
        assert lent(world) == [True]
        await world.stop()
        with pytest.raises((ShuttingDown, LinkLost)):
            await play(robot, 5)
