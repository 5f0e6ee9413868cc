"""A world behind its environment's port: frames, ends and errors as if the agent had connected to it directly."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import websockets

from hudsim.errors import (
    ConnectError,
    ContractError,
    FrameTooLarge,
    HudsimError,
    LinkLost,
    PolicyDeadline,
    SimDiverged,
    SimFailed,
    SlotTaken,
    WireError,
)
from hudsim.net import Address, Link, Server, connect
from hudsim.net.frames import Close
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.codec import encode
from hudsim.wire.session import Heard
from tests.asyncrun import on_loop
from tests.environment.daemons import until
from tests.environment.relayed import before, until_ended
from tests.robot.playing import play, zeros
from tests.robot.worlds import inline, spawned

MIB = 1 << 20


@asynccontextmanager
async def joined(
    world: RobotEndpoint, *, relayed: bool = True, seed: int = 0
) -> AsyncIterator[tuple[RobotClient, str]]:
    """An agent that has claimed a new episode of ``world``, through a relay or directly, and the episode's token."""
    episode = await world.reset(seed=seed)
    async with before(world.capability().url) as (url, _):
        where = url if relayed else world.capability().url
        async with await RobotClient.connect(where, token=episode.token) as robot:
            yield robot, episode.token


def shown(heard: Heard) -> dict[str, Any]:
    """All that an observation says, but for the times."""
    meta = {
        key: value for key, value in heard.meta.items() if not key.endswith("_ns") and key not in ("episode", "result")
    }
    data = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in heard.data.items()}
    return {
        "data": data,
        "meta": meta,
        "reward": heard.reward,
        "ends": (heard.terminated, heard.truncated, heard.success),
    }


@on_loop
@pytest.mark.parametrize("kind", [inline, spawned])
async def test_an_episode_is_bit_for_bit_the_direct_one(kind: Callable[..., RobotEndpoint]) -> None:
    episodes: list[list[dict[str, Any]]] = []
    records: list[dict[str, Any]] = []
    async with kind(max_ticks=20, cameras=2, width=96, height=64) as world:
        for relayed in (False, True):
            async with joined(world, relayed=relayed, seed=5) as (robot, token):
                rng = np.random.default_rng(3)
                seen = await play(robot, 30, lambda _: rng.uniform(-1, 1, 2).astype(np.float32))  # noqa: B023
                episodes.append([shown(heard) for heard in seen])
                records.append(await world.result(token))
    assert len(episodes[0]) == 21
    assert episodes[0] == episodes[1]
    for key in ("end", "ticks", "total_reward", "success", "clipped"):
        assert records[0][key] == records[1][key]


@on_loop
async def test_one_connection_plays_one_episode_after_the_other() -> None:
    async with inline(max_ticks=3) as world, joined(world) as (robot, token):
        assert (await play(robot, 9))[-1].over
        await world.result(token)
        again = await world.reset(seed=1)
        await robot.claim(again.token)
        assert (await play(robot, 9))[-1].index == 3


@on_loop
async def test_a_realtime_world_ticks_and_stops_through_it() -> None:
    async with inline(mode="realtime", rate_hz=100, max_ticks=30) as world, joined(world) as (robot, token):
        heard = await robot.get_observation()
        await robot.send_chunk(zeros(robot, 40), obs_index=0)
        while not heard.over:
            heard = await robot.get_observation()
        assert heard.truncated
        assert (await world.result(token))["ticks"] == 30


async def _acts_wrongly(robot: RobotClient) -> None:
    await robot.send_action(np.zeros(7, np.float32))


async def _sends_garbage(robot: RobotClient) -> None:
    await robot._link.send(b"\xc1")


async def _sends_text(robot: RobotClient) -> None:
    await robot._link.send("hello")


async def _acts(robot: RobotClient) -> None:
    await robot.send_action(zeros(robot))


async def _sleeps(robot: RobotClient) -> None:
    pass


async def _sends_too_much(robot: RobotClient) -> None:
    await robot.send_action(np.zeros(17 * MIB, np.float32))


FAST = {"policy_deadline_s": 0.2, "warmup_s": 0.4}


@on_loop
@pytest.mark.parametrize(
    ("options", "does", "kind"),
    [
        ({}, _acts_wrongly, ContractError),
        ({}, _sends_garbage, WireError),
        ({}, _sends_text, WireError),
        ({}, _sends_too_much, FrameTooLarge),
        ({"faults": {"raise_at": 1}}, _acts, SimFailed),
        ({"faults": {"diverge_at": 1}}, _acts, SimDiverged),
        ({"timing": FAST}, _sleeps, PolicyDeadline),
    ],
)
async def test_typed_errors_are_the_direct_ones(options: Any, does: Any, kind: type[HudsimError]) -> None:
    said: list[tuple[HudsimError, Any]] = []
    async with inline(**options) as world:
        for relayed in (False, True):
            async with joined(world, relayed=relayed) as (robot, token):
                await robot.get_observation()
                await does(robot)
                with pytest.raises(kind) as raised:
                    await robot.get_observation()
                with pytest.raises(LinkLost if kind is not FrameTooLarge else FrameTooLarge) as ended:
                    await robot._link.receive()
                said.append((raised.value, ended.value.data))
                record = await world.result(token)
                said.append((HudsimError(str(record["end"])), None))
    (direct, end), (outcome, _), (relayed_error, relayed_end), (relayed_outcome, _) = said
    assert type(direct) is type(relayed_error) is kind
    if kind is not FrameTooLarge:  # which names the peer
        assert (direct.message, direct.data) == (relayed_error.message, relayed_error.data)
    assert end == relayed_end
    assert end["close_code"] == kind.code
    assert outcome.message == relayed_outcome.message


@on_loop
async def test_a_slot_that_is_taken_and_a_token_that_is_wrong_are_told() -> None:
    async with inline() as world, joined(world) as (robot, token):
        await robot.get_observation()
        async with before(world.capability().url) as (url, _):
            for wrong, kind in ((token, SlotTaken), ("nonsense", HudsimError)):
                async with await RobotClient.connect(url, token=wrong) as other:
                    with pytest.raises(kind):
                        await other.get_observation()


@on_loop
async def test_an_agent_that_just_closes_is_heard_as_that() -> None:
    async with inline(autostart=True) as world, before(world.capability().url) as (url, _):
        async with websockets.connect(url, compression=None, max_size=None) as ws:
            await ws.recv()
            await ws.send(encode({"claim": None}))
            await ws.recv()
            await ws.send(encode({"actions": np.zeros(2, np.float32)}))
            await ws.recv()
        await until_ended(world, 'hudsim_episodes_total{end="max_steps"}')


@on_loop
async def test_text_frames_stay_text() -> None:
    async def echo(link: Link) -> None:
        while True:
            await link.send(await link.receive())

    server = Server({"/robot/robot": echo}, bearer="the-worlds")
    world = (await server.start()).at("/robot/robot")
    async with before(world.url) as (url, _):
        link = await connect(url)
        for frame in ("text", b"", b"bytes", "", b"x" * 300_000):
            await link.send(frame)
            assert await link.receive() == frame
        await link.close()
    await server.stop()


@on_loop
@pytest.mark.parametrize("code", [1000, 1001, 1008, 4400, 4503, None])
async def test_a_close_passes_both_ways_with_its_code_and_reason(code: int | None) -> None:
    heard: list[dict[str, Any]] = []

    async def world(link: Link) -> None:
        if await link.receive() == "close":
            await _close(link, code)
        try:
            await link.receive()
        except LinkLost as lost:
            heard.append(lost.data)

    server = Server({"/robot/robot": world}, bearer=None)
    address = (await server.start()).at("/robot/robot")
    expected = {"close_code": code, "close_reason": "so there" if code else ""}
    async with before(address.url) as (url, _):
        link = await connect(url)
        await link.send("close")
        with pytest.raises(LinkLost) as lost:
            await link.receive()
        assert lost.value.data == expected
        heard.clear()
        link = await connect(url)
        await link.send("stay")
        await _close(link, code)
        await until(lambda: heard == [expected])
    await server.stop()


async def _close(link: Link, code: int | None) -> None:
    if code is None:
        link.abort()
    else:
        await link.close(code, "so there")


@on_loop
async def test_a_close_without_a_code_is_a_normal_one() -> None:
    async def world(link: Link) -> None:
        await link._stream.close(Close(1005))  # as browsers do

    server = Server({"/robot/robot": world}, bearer=None)
    async with before((await server.start()).at("/robot/robot").url) as (url, _):
        link = await connect(url)
        with pytest.raises(LinkLost) as lost:
            await link.receive()
        assert lost.value.data["close_code"] in (1000, 1005)
    await server.stop()


@on_loop
async def test_a_world_that_does_not_run_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        async with before(f"ws://127.0.0.1:{port}/robot/robot") as (url, _):
            with pytest.raises(ConnectError, match=rf"cannot reach 127\.0\.0\.1:{port}: connection refused"):
                await RobotClient.connect(url)


@on_loop
async def test_a_world_that_does_not_admit_the_relay_is_named_without_its_token() -> None:
    async with inline() as world:
        address = Address.parse(world.capability().url)
        wrong = Address(address.host, address.port, address.path, "wrong-secret")
        async with before(wrong.url) as (url, _):
            with pytest.raises(
                ConnectError, match=f"cannot reach {address.netloc}: got a wrong bearer token"
            ) as refused:
                await RobotClient.connect(url)
            assert "secret" not in str(refused.value)


@on_loop
async def test_an_agent_that_does_not_read_stops_the_world_in_bounded_memory() -> None:
    sent = 0

    async def world(link: Link) -> None:
        nonlocal sent
        while sent < 200:
            await link.send(sent.to_bytes(4) * (MIB // 4))
            sent += 1

    server = Server({"/robot/robot": world}, bearer=None)
    async with before((await server.start()).at("/robot/robot").url) as (url, _):
        link = await connect(url, max_queue=1)
        await asyncio.sleep(1.0)
        assert sent < 60  # three sockets' buffers, and a few frames
        for number in range(200):
            frame = await link.receive()
            assert isinstance(frame, bytes)
            assert (frame[:4], len(frame)) == (number.to_bytes(4), MIB)
        await link.close()
    await server.stop()
