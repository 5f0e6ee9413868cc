"""The agent's end of a connection, against servers that are gone, silent, foreign or broken."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hudsim.errors import BearerError, ConnectError, FrameTooLarge, LinkLost, NoSuchCapability, WireError
from hudsim.net import Address, Link, Server, connect
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.server import RobotServer
from hudsim.testing import FaultyLink
from hudsim.wire.codec import encode
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play
from tests.robot.worlds import Card, inline, spawned


@on_loop
async def test_a_dead_port_is_named_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with asyncio.timeout(2.0):
        with pytest.raises(ConnectError, match=f"127.0.0.1:{port}"):
            await RobotClient.connect(f"ws://127.0.0.1:{port}/robot/robot")


@on_loop
async def test_a_server_that_accepts_and_says_nothing_is_named_within_the_budget() -> None:
    async def silent(link: Link) -> None:
        await link.receive()

    server = Server({"/robot/robot": silent}, bearer=None)
    address = await server.start()
    async with asyncio.timeout(4.0):
        with pytest.raises(ConnectError, match=rf"{address.netloc} accepted but said nothing within 0\.3 s"):
            await RobotClient.connect(address.at("/robot/robot").url, timeout_s=0.3)
    await server.stop()


@on_loop
async def test_a_black_hole_is_named_within_the_budget() -> None:
    async with inline() as world:
        address = Address.parse(world.capability().url)
        async with FaultyLink(address.host, address.port) as link:
            link.drop()
            async with asyncio.timeout(4.0):
                with pytest.raises(ConnectError, match="did not answer"):
                    await RobotClient.connect(link.through(address.url), timeout_s=0.3)


@on_loop
async def test_wrong_tokens_and_names_are_typed() -> None:
    async with inline() as world:
        address = world.address
        with pytest.raises(BearerError):
            await RobotClient.connect(Address(address.host, address.port, address.path, "wrong").url)
        with pytest.raises(NoSuchCapability, match="/robot/robot"):
            await RobotClient.connect(address.at("/robot/left_arm").url)


@on_loop
async def test_a_frame_over_the_limit_is_typed_and_the_episode_goes_on_for_nobody() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        await robot.get_observation()
        await robot.send_action(np.zeros(17 << 20, np.float32))
        with pytest.raises(FrameTooLarge):
            await robot.get_observation()
        await asyncio.sleep(0.2)
        assert (await world.result(episode.token))["end"].startswith("aborted(")


@on_loop
async def test_no_extension_is_agreed_on() -> None:
    async with inline() as world, joined(world) as (robot, _):
        assert robot._link.extensions == []


@on_loop
@pytest.mark.parametrize("greeting", [b"\xc1", b"", "a traceback", encode({"protocol": "other/7"}), encode([1, 2])])
async def test_a_greeting_that_is_none_is_a_typed_error(greeting: Any) -> None:
    async def odd(link: Link) -> None:
        await link.send(greeting if isinstance(greeting, str) else bytes(greeting))
        await link.receive()

    server = Server({"/robot/robot": odd}, bearer=None)
    address = await server.start()
    with pytest.raises(Exception, match=r"\S") as raised:
        await RobotClient.connect(address.at("/robot/robot").url)
    assert type(raised.value).__module__ == "hudsim.errors"
    await server.stop()


@on_loop
@pytest.mark.parametrize("cut", ["cut", "server stops"])
async def test_every_wait_ends_when_the_world_is_gone(cut: str) -> None:
    world = inline()
    await world.start()
    address = Address.parse(world.capability().url)
    async with FaultyLink(address.host, address.port) as link:
        episode = await world.reset()
        robot = await RobotClient.connect(link.through(address.url), token=episode.token)
        await play(robot, 2)
        waiting = asyncio.create_task(robot.get_observation())
        await asyncio.sleep(0.05)
        if cut == "cut":
            link.cut()
        else:
            await world.stop()
        async with asyncio.timeout(1.0):
            with pytest.raises(Exception, match=r"127\.0\.0\.1|going down"):
                await waiting
            with pytest.raises((LinkLost, WireError, Exception)):
                await robot.send_action(np.zeros(2, np.float32))
        await robot.close()
        await robot.close()
    await world.stop()


@on_loop
async def test_an_environment_elsewhere_drives_a_server_that_runs_already() -> None:
    async with inline(num_envs=2) as server:
        remote = RobotEndpoint.remote(server.address.url)
        async with remote:
            capability = remote.capability("left_arm")
            assert capability.name == "left_arm"
            assert capability.params["contract"]["robot_type"] == "test-card"
            async with joined(remote, seed=9) as (robot, episode):
                seen = await play(robot, 3)
                assert Card.read(seen[0].data["observation/camera0"]).seed == 9
                await robot.end("max_steps")
                await robot.get_observation()
                assert (await remote.result(episode.token))["end"] == "max_steps"
        await server.reset()
        await remote.stop()


@on_loop
async def test_a_remote_world_is_reached_as_one_reached_it() -> None:
    async with inline() as server:
        address = server.address
        async with (
            FaultyLink(address.host, address.port) as link,
            RobotEndpoint.remote(link.through(address.url)) as far,
        ):
            assert Address.parse(far.capability().url).port == link.address.port
            async with joined(far) as (robot, _):
                assert len(await play(robot, 2)) == 3


async def closed_to(url: str) -> None:
    """``url`` plays its robot and opens nothing else of the server."""
    address = Address.parse(url)
    assert address.bearer
    await (await connect(address)).close()
    for path in ("/control", "/metrics"):
        with pytest.raises(BearerError, match="wrong bearer"):
            await connect(address.at(path))


@on_loop
@pytest.mark.parametrize("make", [inline, spawned])
async def test_what_agents_are_given_plays_and_neither_starts_nor_grades(make: Callable[..., RobotEndpoint]) -> None:
    async with make() as world:
        await closed_to(world.capability().url)
        assert world.address.bearer != Address.parse(world.capability().url).bearer
        async with RobotEndpoint.remote(world.address.url) as far:
            await closed_to(far.capability().url)
            assert far.address == world.address
            async with joined(far) as (robot, _):
                assert len(await play(robot, 2)) == 3
        with pytest.raises(BearerError, match="wrong bearer"):
            await RobotEndpoint.remote(world.capability().url).start()


@on_loop
async def test_a_server_binds_as_it_is_told() -> None:
    async with inline(host="127.0.0.1") as world:
        inner: Any = world._world
        server: RobotServer = inner._server
        net: Any = server._net
        assert [sock.getsockname()[0] for sock in net._server.sockets] == ["127.0.0.1"]


@on_loop
async def test_an_address_already_has_a_token_unless_none_is_asked_for() -> None:
    async with inline() as one, inline() as two:
        tokens = {Address.parse(world.capability().url).bearer for world in (one, two)}
        assert len(tokens) == 2
        assert all(token and len(token) >= 20 for token in tokens)
    async with inline(bearer="") as free:
        assert Address.parse(free.capability().url).bearer is None
