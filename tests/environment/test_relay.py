"""A world behind its environment's port: frames, ends and errors as if the agent had connected to it directly."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import websockets

from hudsim.environment.relay import relay
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
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.testing import FaultyLink
from hudsim.wire.codec import encode
from hudsim.wire.session import Heard
from tests.asyncrun import on_loop
from tests.environment.daemons import until
from tests.robot.playing import metric, play, zeros
from tests.robot.worlds import inline, spawned

MIB = 1 << 20
SOON_S = 4.0


@asynccontextmanager
async def before(url: str) -> AsyncIterator[tuple[str, Server]]:
    """A server that relays ``/robot/arm`` to ``url``: the relay's own URL, and the server."""
    server = Server({"/robot/arm": lambda link: relay(link, url)}, bearer="the-environments", max_queue=4)
    address = await server.start()
    try:
        yield address.at("/robot/arm").url, server
    finally:
        await server.stop()


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
        await _until_ended(world, 'hudsim_episodes_total{end="max_steps"}')


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
        await link._ws.close(None)  # type: ignore[arg-type]  # as browsers do

    server = Server({"/robot/robot": world}, bearer=None)
    async with before((await server.start()).at("/robot/robot").url) as (url, _):
        link = await connect(url)
        with pytest.raises(LinkLost) as lost:
            await link.receive()
        assert lost.value.data["close_code"] in (1000, 1005)
    await server.stop()


WORLD = """
import asyncio
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
async def main():
    spec = WorldSpec("hudsim.bridges.testcard:TestCardBridge", {})
    async with RobotEndpoint.inline(spec, autostart=True) as world:
        print(world.capability().url, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@on_loop
async def test_a_killed_world_is_lost_to_the_agent_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", WORLD], stdout=subprocess.PIPE, text=True) as world:  # noqa: ASYNC220
        assert world.stdout is not None
        try:
            served = (await asyncio.to_thread(world.stdout.readline)).strip()
            async with before(served) as (url, _), await RobotClient.connect(url) as robot:
                await play(robot, 2)
                waiting = asyncio.create_task(robot.get_observation())
                await asyncio.sleep(0.05)
                world.kill()
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(LinkLost, match="gone without a goodbye"):
                        await waiting
        finally:
            world.kill()


AGENT = """
import asyncio, sys
from hudsim.robot.client import RobotClient
async def main():
    robot = await RobotClient.connect(sys.argv[1], token=sys.argv[2])
    await robot.get_observation()
    print("playing", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@on_loop
async def test_a_killed_agent_is_lost_to_the_world() -> None:
    async with inline() as world, before(world.capability().url) as (url, _):
        episode = await world.reset()
        command = [sys.executable, "-c", AGENT, url, episode.token]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:  # noqa: ASYNC220
            assert agent.stdout is not None
            assert await asyncio.to_thread(agent.stdout.readline) == "playing\n"
            agent.kill()
        await _until_ended(world, 'hudsim_episodes_total{end="aborted(policy_lost)"}')
        assert (await world.result(episode.token))["end"] == "aborted(policy_lost)"


async def _until_ended(world: RobotEndpoint, name: str) -> None:
    async with asyncio.timeout(SOON_S):
        while await metric(world, name) != 1:  # noqa: ASYNC110 - it is asked over HTTP
            await asyncio.sleep(0.02)


@on_loop
@pytest.mark.parametrize("side", ["agent", "world"])
async def test_a_link_that_is_cut_on_either_side_cuts_the_other(side: str) -> None:
    async with inline() as world:
        episode = await world.reset()
        address = Address.parse(world.capability().url)
        async with FaultyLink(address.host, address.port) as far, before(far.through(address.url)) as (url, _):
            here = Address.parse(url)
            async with FaultyLink(here.host, here.port) as near:
                robot = await RobotClient.connect(near.through(url), token=episode.token)
                await play(robot, 1)
                (near if side == "agent" else far).cut()
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(LinkLost):
                        await robot.get_observation()
                await _until_ended(world, 'hudsim_episodes_total{end="aborted(policy_lost)"}')
                await robot.close()


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


@on_loop
@pytest.mark.parametrize("stalled", [False, True])
async def test_stopping_the_server_ends_its_relays_and_leaves_no_task(stalled: bool) -> None:
    lost: list[HudsimError] = []

    async def world(link: Link) -> None:
        try:
            if stalled:
                await link.ended()
            else:
                await link.receive()
        except LinkLost as error:
            lost.append(error)

    worlds = Server({"/robot/robot": world}, bearer=None, max_queue=1)
    async with before((await worlds.start()).at("/robot/robot").url) as (url, server):
        link = await connect(url)
        filling = asyncio.create_task(_fill(link if stalled else None))
        await asyncio.sleep(0.3)
        async with asyncio.timeout(SOON_S):
            await server.stop()
            with pytest.raises(LinkLost):
                await link.receive()
            with pytest.raises(LinkLost):
                await filling
        if not stalled:
            await until(lambda: bool(lost))
            assert lost[0].data["close_code"] == 1001
    await until(lambda: len(asyncio.all_tasks()) <= 2)
    await worlds.stop()
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def _fill(link: Link | None) -> None:
    while link is not None:
        await link.send(bytes(MIB))
    raise LinkLost("nothing to fill")
