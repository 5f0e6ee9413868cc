from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets

from hudsim.errors import (
    BearerError,
    ConnectError,
    FrameTooLarge,
    LinkLost,
    NoSuchCapability,
    OriginError,
    UsageError,
)
from hudsim.net import Address, Link, Server, connect
from tests.asyncrun import on_loop, within
from tests.net.http import get, get_json

BEARER = "the-token"


async def echo(link: Link) -> None:
    while True:
        await link.send(await link.receive())


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Address]:
    pages = {"/healthz": lambda: ("application/json", '{"status": "ok"}'), "/metrics": lambda: ("text/plain", "m 1\n")}
    server = Server({"/echo": echo}, pages=pages, **{"bearer": BEARER, **options})
    address = await server.start()
    try:
        yield address.at("/echo")
    finally:
        await server.stop()


@on_loop
async def test_frames_go_both_ways_uncompressed() -> None:
    async with serving() as address:
        link = await connect(address)
        for frame in ("text", b"", b"x" * 1_000_000):
            await link.send(frame)
            assert await link.receive() == frame
        assert link.extensions == []
        await link.close()


@on_loop
async def test_a_client_that_offers_compression_gets_none() -> None:
    async with serving() as address, websockets.connect(address.url, compression="deflate") as ws:
        assert list(ws.protocol.extensions) == []
        assert "Sec-WebSocket-Extensions" not in (ws.response.headers if ws.response else {})


@on_loop
async def test_a_missing_or_wrong_bearer_token_is_a_typed_error() -> None:
    async with serving() as address:
        for bearer, word in ((None, "no bearer token"), ("wrong", "a wrong bearer token")):
            with pytest.raises(BearerError, match=word) as refused:
                await connect(Address(address.host, address.port, "/echo", bearer))
            assert address.netloc in str(refused.value)
            assert BEARER not in str(refused.value)
        with pytest.raises(BearerError):
            await connect(Address(address.host, address.port, "/not-there", None))


@on_loop
async def test_the_token_is_taken_from_the_url_or_the_header() -> None:
    async with serving() as address:
        bare = f"ws://{address.netloc}/echo"
        async with websockets.connect(f"{bare}?bearer={BEARER}"):
            pass
        async with websockets.connect(bare, additional_headers={"Authorization": f"Bearer {BEARER}"}):
            pass


@on_loop
async def test_a_page_of_another_origin_is_refused() -> None:
    async with serving() as address:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(address.url, origin=websockets.Origin("https://evil.example"))
        assert refused.value.response.status_code == 403
        async with websockets.connect(address.url, origin=websockets.Origin(f"http://{address.netloc}")):
            pass


@on_loop
async def test_http_403_is_a_typed_error() -> None:
    async def forbid(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"error": "a page from x may not connect here"}'
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(forbid, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(OriginError, match="a page from x"):
            await connect(Address(host, port))


@on_loop
async def test_a_path_that_is_not_there_lists_those_that_are() -> None:
    async with serving() as address:
        with pytest.raises(NoSuchCapability, match=r"/robot/nope.*/echo.*/healthz") as refused:
            await connect(address.at("/robot/nope"))
        assert address.netloc in str(refused.value)


@on_loop
async def test_health_needs_no_token_and_metrics_do() -> None:
    async with serving() as address:
        assert await get_json(address, "/healthz") == {"status": "ok"}
        assert (await get(address, "/metrics"))[0] == 401
        assert await get(address, "/metrics", Authorization=f"Bearer {BEARER}") == (200, "m 1\n")
        status, body = await get(address, f"/echo?bearer={BEARER}")
        assert status == 426
        assert "WebSocket" in json.loads(body)["error"]


@on_loop
async def test_without_a_token_everybody_is_let_in() -> None:
    async with serving(bearer=None) as address:
        assert address.bearer is None
        await (await connect(address)).close()


@on_loop
async def test_a_frame_over_the_limit_is_a_typed_error_for_its_sender() -> None:
    async with serving(max_frame_bytes=10_000) as address:
        link = await connect(address)
        await link.send(b"x" * 10_000)
        assert len(await link.receive()) == 10_000
        await link.send(b"x" * 10_001)
        with pytest.raises(FrameTooLarge, match=address.netloc):
            await link.receive()


@on_loop
async def test_a_frame_over_the_limit_is_a_typed_error_for_its_receiver() -> None:
    async with serving() as address:
        link = await connect(address, max_frame_bytes=1000)
        await link.send(b"x" * 1001)
        with pytest.raises(FrameTooLarge):
            await link.receive()


@on_loop
async def test_it_binds_the_host_that_it_is_told() -> None:
    server = Server({"/echo": echo}, bearer=None)
    address = await server.start("127.0.0.1", 0)
    bound = [sock.getsockname()[0] for sock in server._server.sockets] if server._server else []
    assert bound == ["127.0.0.1"]
    assert address.host == "127.0.0.1"
    assert await server.start() == address, "a second start does nothing"
    await server.stop()
    await server.stop()


@on_loop
async def test_a_port_in_use_is_a_usage_error_that_names_it() -> None:
    async with serving() as address:
        with pytest.raises(UsageError, match=address.netloc):
            await Server({}, bearer=None).start(address.host, address.port)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("clients", [0, 1, 2])
def test_it_stops_with_idle_clients_and_the_port_is_free_at_once(loop: str, clients: int) -> None:
    async def main() -> None:
        server = Server({"/echo": echo}, bearer=None)
        address = await server.start()
        links = [await connect(address.at("/echo")) for _ in range(clients)]
        async with asyncio.timeout(2.0):
            await server.stop()
        for link in links:
            with pytest.raises(LinkLost, match="1001"):
                await link.receive()
        again = Server({"/echo": echo}, bearer=None)
        assert (await again.start(address.host, address.port)).port == address.port
        await again.stop()

    factory = __import__(loop).new_event_loop
    within(20, main(), factory)


@on_loop
async def test_it_stops_though_a_client_does_not_answer() -> None:
    server = Server({"/echo": echo}, bearer=None)
    address = await server.start()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(
        b"GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert b"101" in await reader.readline()
    silent = await asyncio.open_connection(address.host, address.port)
    async with asyncio.timeout(4.0):
        await server.stop()
    for end in (writer, silent[1]):
        end.close()


@on_loop
async def test_a_closed_port_is_refused_at_once_by_name() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with asyncio.timeout(2.0):
        with pytest.raises(ConnectError, match=rf"127\.0\.0\.1:{port}: connection refused"):
            await connect(f"ws://127.0.0.1:{port}/robot/robot")


@on_loop
async def test_a_port_that_says_nothing_fails_within_its_budget() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(3.0):
            with pytest.raises(ConnectError, match=rf"127\.0\.0\.1:{port} did not answer within 0\.2 s"):
                await connect(f"ws://127.0.0.1:{port}/", timeout_s=0.2)


@on_loop
@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b""])
async def test_what_is_no_websocket_server_is_called_that(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError, match=f":{port}"):
            await connect(f"ws://127.0.0.1:{port}/")


@on_loop
async def test_a_host_that_does_not_resolve_is_a_connect_error() -> None:
    with pytest.raises(ConnectError, match=r"no-such-host\.invalid"):
        await connect("ws://no-such-host.invalid:1/")


@on_loop
async def test_a_pass_opens_its_own_path_and_nothing_else() -> None:
    server = Server(
        {"/echo": echo, "/echo/more": echo, "/control": echo},
        pages={"/metrics": lambda: ("text/plain", "m 1\n")},
        bearer=BEARER,
    )
    address = await server.start()
    one, other = server.admit("/echo"), server.admit("/control")
    assert len({one, other, BEARER}) == 3
    for token, path in ((one, "/echo"), (other, "/control"), (BEARER, "/echo"), (BEARER, "/control")):
        await (await connect(dataclasses.replace(address.at(path), bearer=token))).close()
    for path in ("/control", "/echo/more", "/echo/", "/metrics", "/nothing", "//echo", "/ECHO"):
        with pytest.raises(BearerError):
            await connect(dataclasses.replace(address.at(path), bearer=one))
    assert (await get(address, f"/metrics?bearer={one}"))[0] == 401
    await server.stop()


@on_loop
async def test_a_pass_that_has_ended_opens_nothing_and_cuts_what_it_let_in() -> None:
    server = Server({"/echo": echo}, bearer=BEARER)
    address = (await server.start()).at("/echo")
    one, other = server.admit("/echo"), server.admit("/echo")
    links = [await connect(dataclasses.replace(address, bearer=token)) for token in (one, other, BEARER)]
    for link in links:
        await link.send("x")
        await link.receive()
    server.dismiss("/echo", one)
    server.dismiss("/echo", one)
    with pytest.raises(LinkLost):
        await links[0].receive()
    with pytest.raises(BearerError):
        await connect(dataclasses.replace(address, bearer=one))
    for link in links[1:]:
        await link.send("still")
        assert await link.receive() == "still"
    await server.stop()


@on_loop
async def test_it_stops_in_time_and_says_nothing_though_a_handler_takes_its_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def lingers(link: Link) -> None:
        await link.ended()
        await asyncio.sleep(60)

    server = Server({"/lingers": lingers}, bearer=None)
    link = await connect((await server.start()).at("/lingers"))
    async with asyncio.timeout(10.0):
        await server.stop()
        with pytest.raises(LinkLost, match="1001"):
            await link.receive()
    assert not caplog.records
    assert len(asyncio.all_tasks()) <= 2
