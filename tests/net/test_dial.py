from __future__ import annotations

import asyncio
import socket

import pytest

from hudsim.errors import ConnectError
from hudsim.net import dial
from tests.asyncrun import on_loop


@on_loop
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_socket_is_connected_and_does_not_block(host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        await dial(host, server.getsockname()[1], timeout_s=5.0) as sock,
    ):
        assert sock.getpeername() == server.getsockname()
        assert not sock.getblocking()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@on_loop
@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", r"127\.0\.0\.1"), ("localhost", "localhost")])
async def test_a_port_that_nobody_listens_at_is_named(host: str, shown: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ConnectError, match=rf"{shown}:{port}: connection refused; is it running\?"):
            await dial(host, port, timeout_s=5.0)


@on_loop
async def test_a_host_that_does_not_resolve_is_named() -> None:
    with pytest.raises(ConnectError, match=r"no-such-host\.invalid:1: no such host"):
        await dial("no-such-host.invalid", 1, timeout_s=5.0)
    with pytest.raises(ConnectError, match="no such host"):
        await dial("x" * 100, 1, timeout_s=5.0)


@on_loop
async def test_who_does_not_answer_is_named_within_the_budget() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        where = deaf.getsockname()
        with socket.create_connection(where):  # whoever comes after it is not answered
            with pytest.raises(ConnectError, match=rf"127\.0\.0\.1:{where[1]} did not answer within 0\.1 s"):
                await dial(*where, timeout_s=0.1)
            dialling = asyncio.create_task(dial(*where, timeout_s=20.0))
            await asyncio.sleep(0.05)
            dialling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await dialling
