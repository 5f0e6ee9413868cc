"""The local end of a tunnel: what it says when there is no way, and what it leaves behind."""

from __future__ import annotations

import asyncio
import resource
import socket

from hudsim.environment.forwarder import Forwarder
from hudsim.errors import BearerError, ConnectError, NoSuchCapability
from hudsim.net import Address, Server
from tests.asyncrun import on_loop
from tests.environment.daemons import behind, daemon, echo, until, was_reset


@on_loop
async def test_a_wrong_token_resets_the_client_and_is_kept() -> None:
    with daemon(echo) as port:
        async with (
            behind(port) as way,
            Forwarder(Address(way.address.host, way.address.port, "/", "wrong"), "box") as forwarder,
        ):
            await _refused(forwarder)
            assert isinstance(forwarder.failure, BearerError)


@on_loop
async def test_a_capability_that_is_not_there_lists_those_that_are() -> None:
    with daemon(echo) as port:
        async with behind(port) as way, Forwarder(way.address, "bix") as forwarder:
            await _refused(forwarder)
            assert isinstance(forwarder.failure, NoSuchCapability)
            assert "/tunnel/box" in forwarder.failure.message


@on_loop
async def test_a_server_that_is_gone_is_named() -> None:
    server = Server({}, bearer=None)
    address = await server.start()
    await server.stop()
    async with Forwarder(address, "box") as forwarder:
        await _refused(forwarder)
        assert isinstance(forwarder.failure, ConnectError)
        assert address.netloc in forwarder.failure.message


@on_loop
async def test_a_daemon_that_does_not_run_is_named_and_served_once_it_runs() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        async with behind(port) as way:
            await _refused(way.forwarder)
            assert isinstance(way.forwarder.failure, ConnectError)
            assert f"127.0.0.1:{port}: connection refused; is it running?" in way.forwarder.failure.message
            assert way.forwarder.failure.data["close_code"] == 4502
            free.listen()
            with await asyncio.to_thread(way.connect) as client, (await asyncio.to_thread(free.accept))[0] as far:
                await asyncio.to_thread(far.sendall, b"here I am")
                assert await asyncio.to_thread(client.recv, 100) == b"here I am"


async def _refused(forwarder: Forwarder) -> None:
    where = await forwarder.start()

    def knock() -> bool:
        try:
            with socket.create_connection(where, 5.0) as client:
                return was_reset(client)
        except ConnectionResetError:  # quicker than connect() looks
            return True

    assert await asyncio.to_thread(knock)
    await until(lambda: forwarder.failure is not None)


@on_loop
async def test_a_forwarder_that_is_stopped_as_somebody_comes_leaves_nothing() -> None:
    with daemon(echo) as port:
        async with behind(port) as way:
            tasks = len(asyncio.all_tasks())
            for turns in range(12):
                forwarder = Forwarder(way.address, "box")
                with socket.create_connection(await forwarder.start()):
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    await forwarder.stop()
            await until(lambda: len(asyncio.all_tasks()) == tasks)


@on_loop
async def test_a_second_start_is_the_first() -> None:
    forwarder = Forwarder(Address("127.0.0.1", 1), "box")
    where = await forwarder.start()
    assert await forwarder.start() == where
    assert where[0] == "127.0.0.1"
    await forwarder.stop()
    assert forwarder.failure is None


@on_loop
async def test_a_process_out_of_descriptors_serves_those_who_wait_once_it_has_some() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.settimeout(10.0)
        async with behind(server.getsockname()[1]) as way:
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            with socket.socket() as newest:
                resource.setrlimit(resource.RLIMIT_NOFILE, (newest.fileno(), limits[1]))
            try:
                await asyncio.to_thread(client.connect, ("127.0.0.1", way.port))
                await asyncio.sleep(0.3)
                assert not way.forwarder._carrying
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            with (await asyncio.to_thread(server.accept))[0] as far:
                await asyncio.to_thread(far.sendall, b"still here")
                assert await asyncio.to_thread(client.recv, 100) == b"still here"
