from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hudsim.errors import LinkLost, NoFreeSlot, UnknownName, UsageError
from hudsim.net import Link, RpcClient, Server, connect, serve_rpc
from tests.asyncrun import on_loop


async def add(a: int, b: int = 1) -> int:
    return a + b


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


async def fail() -> None:
    raise NoFreeSlot("all 4 slots hold an episode", slots=4)


async def crash() -> None:
    raise RuntimeError("a bug")


@asynccontextmanager
async def calling() -> AsyncIterator[tuple[RpcClient, Server]]:
    methods = {method.__name__: method for method in (add, wait, fail, crash)}

    async def control(link: Link) -> None:
        await serve_rpc(link, methods)

    server = Server({"/control": control}, bearer=None)
    client = RpcClient(await connect((await server.start()).at("/control")))
    try:
        yield client, server
    finally:
        await client.close()
        await server.stop()


@on_loop
async def test_a_call_returns_what_the_method_returns() -> None:
    async with calling() as (client, _):
        assert await client.call("add", a=2, b=3) == 5
        assert await client.call("add", a=2) == 3


@on_loop
async def test_answers_come_in_any_order() -> None:
    async with calling() as (client, _):
        slow = asyncio.create_task(client.call("wait", seconds=0.3))
        assert await client.call("add", a=1) == 2
        assert not slow.done()
        assert await slow == "waited 0.3"


@on_loop
async def test_a_typed_error_arrives_as_itself() -> None:
    async with calling() as (client, _):
        with pytest.raises(NoFreeSlot, match="all 4 slots") as raised:
            await client.call("fail")
        assert raised.value.data == {"slots": 4}


@on_loop
async def test_a_bug_in_a_method_is_an_answer_too() -> None:
    async with calling() as (client, _):
        with pytest.raises(Exception, match="RuntimeError: a bug"):
            await client.call("crash", timeout_s=5.0)
        assert await client.call("add", a=1) == 2


@on_loop
async def test_an_unknown_method_names_the_nearest() -> None:
    async with calling() as (client, _):
        with pytest.raises(UnknownName, match="did you mean 'add'"):
            await client.call("ad")


@on_loop
async def test_wrong_parameters_are_a_usage_error() -> None:
    async with calling() as (client, _):
        with pytest.raises(UsageError, match="nope"):
            await client.call("add", nope=1)


@on_loop
async def test_a_call_with_a_budget_ends_in_it() -> None:
    async with calling() as (client, _):
        with pytest.raises(TimeoutError):
            await client.call("wait", seconds=30, timeout_s=0.1)


@on_loop
async def test_calls_under_way_end_with_the_link() -> None:
    async with calling() as (client, server):
        slow = asyncio.create_task(client.call("wait", seconds=30))
        await client.call("add", a=1)
        await server.stop()
        async with asyncio.timeout(2.0):
            with pytest.raises(LinkLost):
                await slow
            with pytest.raises(LinkLost):
                await client.call("add", a=1)


@on_loop
@pytest.mark.parametrize(
    "frame",
    ["", "nonsense", "[]", "3", '{"id": 1}', '{"id": 1, "method": 3}', '{"id": 1, "method": "add", "params": [1]}'],
)
async def test_what_is_no_call_is_answered_with_an_error(frame: str) -> None:
    async with calling() as (_, server):
        link = await connect(server.address.at("/control"))
        await link.send(frame)
        answer: dict[str, Any] = json.loads(await link.receive())
        assert answer["error"]["code"] < 0
        await link.close()
