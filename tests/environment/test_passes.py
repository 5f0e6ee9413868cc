"""What an agent is let in with: its session's passes, each for one capability, never the control channel's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from hudsim.capability import Capability
from hudsim.environment import ControlClient, Environment
from hudsim.errors import BearerError, LinkError, LinkLost, UnknownName
from hudsim.net import Address, Link, Server, connect
from tests.asyncrun import on_loop
from tests.environment.daemons import daemon, echo, until
from tests.environment.served import BEARER, serving


def two_daemons(port: int) -> Environment:
    """``site`` and ``other``, both at ``port``; ``browse`` publishes ``late`` when it starts."""
    env = Environment("site")
    for name in ("site", "other"):
        env.add_capability(Capability(name, "tcp", f"tcp://127.0.0.1:{port}"))

    @env.template()
    async def browse() -> AsyncGenerator[Any, Any]:
        env.add_capability(Capability("late", "tcp", f"tcp://127.0.0.1:{port}"))
        yield "go"
        yield 1.0

    return env


async def echoed(url: str) -> bytes:
    """What comes back from an echo through the forwarder at ``url``; b"": it was cut."""
    address = Address.parse(url.replace("tcp://", "ws://"))
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(b"hello")
        return await reader.read(5)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def pass_of(control: ControlClient, name: str) -> str:
    """The token with which the agent is let in to ``name``."""
    await control.reach(control.capabilities[name], direct=False)
    return str(control._forwarders[name]._address.bearer)


@on_loop
async def test_a_tunnels_pass_opens_neither_the_control_channel_nor_another_tunnel() -> None:
    with daemon(echo) as port:
        async with serving(two_daemons(port)) as server, await ControlClient.connect(server.address) as control:
            token = await pass_of(control, "site")
            assert token != BEARER
            assert await echoed((await control.reach(control.capabilities["site"], direct=False)).url) == b"hello"
            for path in ("/control", "/tunnel/other", "/metrics"):
                with pytest.raises(BearerError):
                    await connect(replace(server.address.at(path), bearer=token))


@on_loop
async def test_a_robots_url_holds_a_pass_that_starts_and_grades_nothing() -> None:
    async def world(link: Link) -> None:
        await link.send("a world")

    worlds = Server({"/robot/robot": world}, bearer=None)
    env = Environment("arm")
    env.add_capability(Capability("arm", "hudsim/1", (await worlds.start()).at("/robot/robot").url))
    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        arm = await control.reach(control.capabilities["arm"], direct=False)
        assert BEARER not in arm.url
        link = await connect(arm.url)
        assert await link.receive() == "a world"
        await link.close()
        with pytest.raises(BearerError):
            await ControlClient.connect(arm.url)
    await worlds.stop()


@on_loop
async def test_each_session_has_passes_of_its_own_which_outlive_its_link() -> None:
    with daemon(echo) as port:
        async with serving(two_daemons(port)) as server:
            one, other = [await ControlClient.connect(server.address) for _ in range(2)]
            token = await pass_of(one, "site")
            assert token != await pass_of(other, "site")
            await one.drop()
            assert one.session_id is not None
            again = await ControlClient.connect(server.address, session_id=one.session_id)
            assert await pass_of(again, "site") == token
            for control in (again, other):
                await control.close()


@pytest.mark.parametrize("way", ["bye", "expiry", "stop"])
@on_loop
async def test_a_pass_ends_with_its_session_and_so_does_what_it_let_in(way: str) -> None:
    with daemon(echo) as port:
        async with serving(two_daemons(port)) as server:
            control = await ControlClient.connect(server.address, park_s=0.05 if way == "expiry" else 30.0)
            token = await pass_of(control, "site")
            tunnel = replace(server.address.at("/tunnel/site"), bearer=token)
            link = await connect(tunnel)
            await link.send(b"hello")
            assert await link.receive() == b"hello"
            await {"bye": control.close, "expiry": control.drop, "stop": server.stop}[way]()
            async with asyncio.timeout(5.0):
                with pytest.raises(LinkLost):
                    await link.receive()
            with pytest.raises(LinkError):
                await connect(tunnel)
            await control.drop()


@on_loop
async def test_what_a_template_publishes_as_it_starts_is_reached_at_once() -> None:
    with daemon(echo) as port:
        async with serving(two_daemons(port)) as server, await ControlClient.connect(server.address) as control:
            assert "late" not in control.capabilities
            await control.start("browse")
            late = await control.reach(control.capabilities["late"], direct=False)
            assert await echoed(late.url) == b"hello"
            with pytest.raises(UnknownName, match="no capability 'later'; did you mean 'late'"):
                await control.reach(Capability("later", "tcp", late.url), direct=False)


@on_loop
async def test_no_more_than_so_many_sessions_are_parked_and_the_oldest_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hudsim.environment.control._MOST_PARKED", 3)
    async with serving(Environment("empty")) as server:
        control = server._control
        ids = []
        for number in range(5):
            client = await ControlClient.connect(server.address, park_s=3600.0)
            ids.append(client.session_id)
            await client.drop()
            await until(lambda: control.live == 0)
            assert control.parked == min(3, number + 1)
        assert list(control._parked) == ids[2:]
