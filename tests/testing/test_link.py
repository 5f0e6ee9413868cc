from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hudsim.errors import LinkLost
from hudsim.net import Link, Server, connect
from hudsim.testing import FaultyLink
from tests.asyncrun import on_loop


async def echo(link: Link) -> None:
    while True:
        await link.send(await link.receive())


@asynccontextmanager
async def through() -> AsyncIterator[tuple[FaultyLink, Link]]:
    """A faulty link to an echoing server, and a connection through it."""
    server = Server({"/echo": echo}, bearer="token")
    address = (await server.start()).at("/echo")
    try:
        async with FaultyLink(address.host, address.port) as faulty:
            link = await connect(faulty.through(address.url))
            yield faulty, link
            await link.close()
    finally:
        await server.stop()


async def round_trip(link: Link, frame: bytes) -> float:
    """Seconds until ``frame`` is back."""
    now = asyncio.get_running_loop().time
    began = now()
    await link.send(frame)
    assert await link.receive() == frame
    return now() - began


@on_loop
async def test_without_faults_it_carries_everything() -> None:
    async with through() as (faulty, link):
        await round_trip(link, bytes(range(256)) * 20_000)
        assert faulty.up.carried > 5_000_000
        assert faulty.down.carried > 5_000_000


@on_loop
async def test_a_delay_is_had_in_each_direction_and_costs_no_throughput() -> None:
    async with through() as (faulty, link):
        faulty.delay_s = 0.1
        assert await round_trip(link, b"x") > 0.19  # the loop's clock counts milliseconds
        faulty.up.delay_s = 0.0
        assert await round_trip(link, b"x") > 0.09
        assert await round_trip(link, b"x" * 8_000_000) < 6.0, "one piece after the other would take 12 s"
        faulty.delay_s = 0.0


@on_loop
async def test_a_cut_is_a_reset_at_both_ends_and_new_connections_are_carried() -> None:
    async with through() as (faulty, link):
        faulty.cut()
        async with asyncio.timeout(2.0):
            with pytest.raises(LinkLost):
                await link.receive()
        again = await connect(faulty.through("ws://127.0.0.1:1/echo?bearer=token"))
        await round_trip(again, b"x")
        await again.close()


@on_loop
async def test_a_stall_holds_everything_up_and_loses_nothing() -> None:
    async with through() as (faulty, link):
        faulty.down.stall()
        await link.send(b"held")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await link.receive()
        faulty.resume()
        assert await link.receive() == b"held"


@on_loop
async def test_a_black_hole_says_nothing() -> None:
    async with through() as (faulty, link):
        faulty.drop()
        await link.send(b"lost")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await link.receive()
        link.abort()


@on_loop
async def test_the_end_of_one_side_reaches_the_other() -> None:
    ended = asyncio.Event()

    async def listen(link: Link) -> None:
        try:
            await link.receive()
        finally:
            ended.set()

    server = Server({"/listen": listen}, bearer=None)
    address = await server.start()
    async with FaultyLink(address.host, address.port) as faulty:
        link = await connect(faulty.through(address.at("/listen").url))
        await link.close()
        async with asyncio.timeout(2.0):
            await ended.wait()
    await server.stop()


@on_loop
async def test_a_server_that_is_not_there_is_a_connection_that_ends() -> None:
    server = Server({"/echo": echo}, bearer=None)
    address = await server.start()
    await server.stop()
    async with FaultyLink(address.host, address.port) as faulty:
        with pytest.raises(Exception, match=r"127\.0\.0\.1"):
            await connect(faulty.through(address.at("/echo").url), timeout_s=2.0)
