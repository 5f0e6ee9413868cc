from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets

from hudsim.errors import HudsimError, LinkLost, NoFreeSlot, UnknownName, UsageError
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


class Unheard(BaseException):
    """Of no known kind, and without words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def leave(how: str) -> None:
    kinds = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "CancelledError": asyncio.CancelledError(),
        "GeneratorExit": GeneratorExit(),
        "Unheard": Unheard(),
        "LinkLost": LinkLost("the daemon is gone"),
    }
    raise kinds[how]


async def odd() -> object:
    return object()


async def oddly() -> None:
    raise NoFreeSlot("all slots are taken", slots=object())


@asynccontextmanager
async def calling() -> AsyncIterator[tuple[RpcClient, Server]]:
    methods = {method.__name__: method for method in (add, wait, fail, crash, leave, odd, oddly)}

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
    ("frame", "words"),
    [
        ("", "no JSON: expecting value at character 0"),
        ("nonsense", "no JSON: expecting value at character 0"),
        ("[" * 200_000, "JSON that is nested too deep"),
        ("[" * 100_000 + "]" * 100_000, "JSON that is nested too deep"),
        ('{"id": ' + "9" * 5000 + "}", "a number of too many digits"),
        (b"\xff\xfe\x00", "bytes that are no UTF-8"),
        ("[]", "expected an object with method, params, id"),
        ("3", "expected an object with method, params, id"),
        ('{"id": 1}', "expected an object with method, params, id"),
        ('{"id": 1, "method": 3}', "expected an object with method, params, id"),
        ('{"id": [1], "method": "add"}', "id: got [1], expected a number or a text"),
        ('{"id": "' + "x" * 1000 + '", "method": "add"}', "id: got 'xxx"),
        ('{"id": 1, "method": "add", "params": [1]}', "params: got a list"),
        ('{"id": 1, "method": "add", "params": 0}', "params: got a int"),
    ],
    ids=range(14),
)
async def test_what_is_no_call_is_answered_in_words(frame: str | bytes, words: str) -> None:
    async with calling() as (client, server):
        link = await connect(server.address.at("/control"))
        await link.send(frame)
        answer: dict[str, Any] = json.loads(await link.receive())
        assert answer["error"]["code"] < 0
        assert words in answer["error"]["message"]
        await link.close()
        assert await client.call("add", a=1) == 2


@on_loop
@pytest.mark.parametrize("how", ["SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit", "Unheard"])
async def test_whatever_a_method_raises_is_an_answer_and_the_server_goes_on(how: str) -> None:
    async with calling() as (client, _):
        with pytest.raises(HudsimError, match=how):
            await client.call("leave", how=how, timeout_s=5.0)
        assert await client.call("add", a=1) == 2


@on_loop
async def test_a_link_that_the_method_lost_is_not_the_callers() -> None:
    async with calling() as (client, server):
        with pytest.raises(LinkLost, match="the daemon is gone") as raised:
            await client.call("leave", how="LinkLost")
        before = client.lost
        assert before is None
        await server.stop()
        with pytest.raises(LinkLost) as own:
            await client.call("add", a=1)
        assert own.value is client.lost
        assert own.value is not raised.value


@on_loop
async def test_what_is_no_json_is_refused_at_either_end() -> None:
    async with calling() as (client, _):
        with pytest.raises(UsageError, match="add: what it is called with is no plain JSON"):
            await client.call("add", a=object())
        with pytest.raises(HudsimError, match="TypeError"):
            await client.call("odd", timeout_s=5.0)
        with pytest.raises(NoFreeSlot, match="all slots are taken"):
            await client.call("oddly", timeout_s=5.0)
        assert await client.call("add", a=1) == 2


@on_loop
async def test_a_long_name_is_cut_wherever_it_is_told() -> None:
    async with calling() as (client, server):
        link = await connect(server.address.at("/control"))
        for call in ({"method": "x" * 3_000_000}, {"method": "add", "params": {"x" * 3_000_000: 1}}):
            await link.send(json.dumps({"id": 1, **call}))
            answer = await link.receive()
            assert "xxxx" in str(answer)
            assert len(answer) < 1000
        await link.close()
        assert await client.call("add", a=1) == 2


@on_loop
async def test_a_peer_that_reads_no_answer_is_not_asked_for_more() -> None:
    begun = 0

    async def page() -> str:
        nonlocal begun
        begun += 1
        return "x" * 1_000_000

    async def control(link: Link) -> None:
        await serve_rpc(link, {"page": page})

    server = Server({"/control": control}, bearer=None, max_queue=4)
    async with websockets.connect((await server.start()).at("/control").url, max_queue=1, max_size=None) as ws:
        ws.transport.pause_reading()
        asking = asyncio.create_task(_ask(ws, 3000))
        await asyncio.sleep(1.0)
        assert 0 < begun <= 64
        asking.cancel()
        await asyncio.wait({asking})
        ws.transport.abort()
    await server.stop()


async def _ask(ws: websockets.ClientConnection, times: int) -> None:
    for number in range(times):
        await ws.send(json.dumps({"id": number, "method": "page", "pad": "x" * 1000}))


@on_loop
async def test_a_call_gets_through_while_others_are_under_way() -> None:
    async with calling() as (client, _):
        slow = [asyncio.create_task(client.call("wait", seconds=30)) for _ in range(31)]
        await asyncio.sleep(0)
        assert await client.call("add", a=1, timeout_s=5.0) == 2
        more = asyncio.create_task(client.call("wait", seconds=0.2))
        late = asyncio.create_task(client.call("add", a=1))
        await asyncio.sleep(0.1)
        assert not late.done(), "the 33rd waits until one of the others is done"
        assert await more == "waited 0.2"
        assert await late == 2
        for task in slow:
            task.cancel()
