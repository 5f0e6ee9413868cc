"""Any TCP daemon through a WebSocket: byte-exact, with half-closes, resets and backpressure as on a bare connection."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import tracemalloc
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from hudsim.environment.tunnel import tunnel
from hudsim.errors import ConnectError, LinkLost
from hudsim.net import Address, Server, connect
from hudsim.testing import FaultyLink
from tests.asyncrun import on_loop
from tests.environment.daemons import Way, behind, daemon, echo, received, reset, until, was_reset

MIB = 1 << 20
BLOCK = os.urandom(MIB)
SOON_S = 4.0


@contextmanager
def held() -> Iterator[tuple[int, Callable[[], socket.socket]]]:
    """A daemon that does nothing by itself: its port, and how to take the newest connection."""
    come: list[socket.socket] = []
    end = threading.Event()

    def hold(connection: socket.socket) -> None:
        come.append(connection)
        end.wait(30.0)

    def take() -> socket.socket:
        connection = come.pop()
        connection.settimeout(20.0)
        return connection

    with daemon(hold) as port:
        try:
            yield port, lambda: _patiently(take)
        finally:
            end.set()


def _patiently(take: Callable[[], socket.socket]) -> socket.socket:
    for _ in range(500):
        try:
            return take()
        except IndexError:
            threading.Event().wait(0.01)
    raise AssertionError("nobody came")


@asynccontextmanager
async def joined() -> AsyncIterator[tuple[Way, socket.socket, socket.socket]]:
    """A way, and both ends of one connection through it: the client's and the daemon's."""
    with held() as (port, taken):
        async with behind(port) as way:
            client = await asyncio.to_thread(way.connect)
            far = await asyncio.to_thread(taken)
            try:
                yield way, client, far
            finally:
                client.close()
                far.close()


@on_loop
async def test_a_web_server_is_fetched_from() -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps({"path": self.path, "sha256": hashlib.sha256(body).hexdigest()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    def fetch(port: int, number: int) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/page/{number}", data=BLOCK[number:])
        with urllib.request.urlopen(request, timeout=10.0) as answer:
            return json.load(answer)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as web:
        thread = threading.Thread(target=web.serve_forever, args=(0.05,))
        thread.start()
        async with behind(web.server_address[1]) as way:
            answers = await asyncio.gather(*(asyncio.to_thread(fetch, way.port, i) for i in range(20)))
        web.shutdown()
        thread.join()
    for number, answer in enumerate(answers):
        assert answer == {"path": f"/page/{number}", "sha256": hashlib.sha256(BLOCK[number:]).hexdigest()}


def _send(sock: socket.socket, mib: int) -> str:
    """Send numbered blocks, then end; their sha256."""
    said = hashlib.sha256()
    for number in range(mib):
        block = number.to_bytes(8) + BLOCK[number:]
        said.update(block)
        sock.sendall(block)
    sock.shutdown(socket.SHUT_WR)
    return said.hexdigest()


def _receive(sock: socket.socket) -> str:
    heard = hashlib.sha256()
    while piece := sock.recv(MIB):
        heard.update(piece)
    return heard.hexdigest()


@on_loop
async def test_100_mb_both_ways_at_once_arrive_byte_for_byte() -> None:
    async with joined() as (_, client, far):
        said_up, heard_up, said_down, heard_down = await asyncio.gather(
            asyncio.to_thread(_send, client, 100),
            asyncio.to_thread(_receive, far),
            asyncio.to_thread(_send, far, 100),
            asyncio.to_thread(_receive, client),
        )
        assert said_up == heard_up
        assert said_down == heard_down


@on_loop
async def test_a_client_that_has_finished_still_hears_the_answer() -> None:
    def digest(connection: socket.socket) -> None:
        connection.sendall(hashlib.sha256(received(connection)).digest() + BLOCK)

    def ask(client: socket.socket) -> bytes:
        with client:
            client.sendall(BLOCK)
            client.shutdown(socket.SHUT_WR)
            return received(client)

    with daemon(digest) as port:
        async with behind(port) as way:
            client = await asyncio.to_thread(way.connect)
            assert await asyncio.to_thread(ask, client) == hashlib.sha256(BLOCK).digest() + BLOCK


@on_loop
async def test_a_daemon_that_has_finished_still_hears_the_rest() -> None:
    async with joined() as (_, client, far):
        await asyncio.to_thread(far.sendall, b"over to you")
        far.shutdown(socket.SHUT_WR)
        assert await asyncio.to_thread(received, client) == b"over to you"
        sending = asyncio.create_task(asyncio.to_thread(client.sendall, BLOCK * 20))
        client_done = asyncio.create_task(asyncio.to_thread(received, far))
        await sending
        client.close()
        assert await client_done == BLOCK * 20


@on_loop
async def test_a_slow_reader_loses_nothing_of_what_its_peer_said_before_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("client", "server"):  # much less than the reader's pauses
        monkeypatch.setattr(f"hudsim.net.{module}.CLOSE_TIMEOUT_S", 0.005)
    async with joined() as (_, client, far):
        client.shutdown(socket.SHUT_WR)
        sent = await _filled(far)
        far.shutdown(socket.SHUT_WR)
        heard = 0
        while piece := await asyncio.to_thread(client.recv, MIB // 2):
            heard += len(piece)
            await asyncio.sleep(0.02)
        assert heard == sent


@on_loop
async def test_many_connections_keep_their_bytes_apart() -> None:
    def talk(way: Way, number: int) -> bytes:
        said = number.to_bytes(4) * 50_000
        with way.connect() as client:
            client.sendall(said)
            client.shutdown(socket.SHUT_WR)
            assert received(client) == said
        return said

    with daemon(echo) as port:
        async with behind(port) as way:
            await asyncio.gather(*(asyncio.to_thread(talk, way, number) for number in range(30)))
            assert way.forwarder.failure is None


@on_loop
@pytest.mark.parametrize("busy", ["idle", "client stalled", "daemon stalled"])
@pytest.mark.parametrize("cut", ["client", "daemon"])
async def test_a_reset_of_either_end_is_soon_the_others(cut: str, busy: str) -> None:
    async with joined() as (way, client, far):
        if busy != "idle":  # fill the way towards whoever does not read
            await _filled(far if busy == "client stalled" else client)
        mine, other = (client, far) if cut == "client" else (far, client)
        reset(mine)
        assert await asyncio.to_thread(was_reset, other, SOON_S)
        if cut == "client":
            assert way.forwarder.failure is None, "the client's own doing"
        else:
            await until(lambda: isinstance(way.forwarder.failure, LinkLost))


async def _filled(sock: socket.socket) -> int:
    """Send until nothing has moved for a while; how many bytes that took."""
    sock.setblocking(False)
    sent, idle = 0, 0
    while idle < 30:
        try:
            sent += sock.send(BLOCK)
            idle = 0
        except BlockingIOError:
            idle += 1
            await asyncio.sleep(0.01)
    return sent


@on_loop
async def test_a_link_that_is_cut_resets_both_ends() -> None:
    with held() as (port, taken):
        async with FaultyLink("127.0.0.1", 1) as link:

            def through(address: Address) -> Address:
                link._target = address.host, address.port
                return Address.parse(link.through(address.url))

            async with behind(port, through=through) as way:
                with await asyncio.to_thread(way.connect) as client, await asyncio.to_thread(taken) as far:
                    link.cut()
                    assert await asyncio.to_thread(was_reset, client, SOON_S)
                    assert await asyncio.to_thread(was_reset, far, SOON_S)
                assert isinstance(way.forwarder.failure, LinkLost)


@on_loop
async def test_a_killed_forwarder_resets_the_daemons_end() -> None:
    program = (
        "import asyncio, sys\n"
        "from hudsim.environment.forwarder import Forwarder\n"
        "from hudsim.net import Address\n"
        "async def main():\n"
        "    async with Forwarder(Address.parse(sys.argv[1]), 'box') as forwarder:\n"
        "        print((await forwarder.start())[1], flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with held() as (port, taken):
        async with behind(port) as way:
            command = [sys.executable, "-c", program, way.address.url]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
                assert process.stdout is not None
                try:
                    local = int(await asyncio.to_thread(process.stdout.readline))
                    client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", local), 10.0)
                    with client, await asyncio.to_thread(taken) as far:
                        process.kill()
                        assert await asyncio.to_thread(was_reset, far, SOON_S)
                finally:
                    process.kill()


@on_loop
@pytest.mark.parametrize("reader", ["client", "daemon"])
async def test_a_reader_that_does_not_read_stops_the_writer_in_bounded_memory(reader: str) -> None:
    async with joined() as (_, client, far):
        source, sink = (far, client) if reader == "client" else (client, far)
        tracemalloc.start()
        try:
            sent = await _filled(source)
            assert tracemalloc.get_traced_memory()[1] < 12 * MIB
        finally:
            tracemalloc.stop()
        assert sent < 100 * MIB  # the kernel's buffers on three connections, and a few pieces
        source.setblocking(True)
        ending = asyncio.create_task(asyncio.to_thread(source.shutdown, socket.SHUT_WR))
        assert len(await asyncio.to_thread(received, sink)) == sent
        await ending


@on_loop
async def test_stopping_the_forwarder_resets_what_goes_through_it() -> None:
    async with joined() as (way, client, far):
        await asyncio.to_thread(client.sendall, b"hello")
        assert await asyncio.to_thread(far.recv, 5) == b"hello"
        async with asyncio.timeout(SOON_S):
            await way.forwarder.stop()
            await way.forwarder.stop()
        assert await asyncio.to_thread(was_reset, client, SOON_S)
        assert await asyncio.to_thread(was_reset, far, SOON_S)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(way.connect)


@on_loop
@pytest.mark.parametrize("stalled", [False, True])
async def test_stopping_the_server_ends_its_tunnels_and_leaves_no_task(stalled: bool) -> None:
    async with joined() as (way, client, far):
        if stalled:
            await _filled(client)
        async with asyncio.timeout(SOON_S):
            await way.server.stop()
        await until(lambda: len(asyncio.all_tasks()) == 1)
        assert await asyncio.to_thread(was_reset, client, SOON_S)
        assert await asyncio.to_thread(was_reset, far, SOON_S)


@on_loop
async def test_a_server_that_stops_does_not_wait_for_a_daemon_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        where = deaf.getsockname()
        with socket.create_connection(where):  # whoever comes after it is not answered
            async with behind(where[1]) as way:
                link = await connect(way.address.at("/tunnel/box"))
                await asyncio.sleep(0.1)
                async with asyncio.timeout(SOON_S):
                    await way.server.stop()
                with pytest.raises(LinkLost, match="1001"):
                    await link.receive()
                await until(lambda: len(asyncio.all_tasks()) == 1)


@on_loop
async def test_a_daemon_that_does_not_answer_is_named_within_the_budget() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        where = deaf.getsockname()
        server = Server({"/t": lambda link: tunnel(link, *where, connect_timeout_s=0.2)}, bearer=None)
        with socket.create_connection(where):
            link = await connect((await server.start()).at("/t"))
            with pytest.raises(ConnectError, match=rf"127\.0\.0\.1:{where[1]} did not answer within 0\.2 s"):
                await link.receive()
        await server.stop()


@on_loop
async def test_200_connections_leave_no_task_and_no_descriptor() -> None:
    def talk(way: Way, count: int) -> None:
        for number in range(count):
            with way.connect() as client:
                client.sendall(b"x" * 1000)
                if number % 4 == 0:
                    reset(client)
                    continue
                client.shutdown(socket.SHUT_WR)
                assert len(received(client)) == 1000

    with daemon(echo) as port:
        async with behind(port) as way:
            await asyncio.gather(*(asyncio.to_thread(talk, way, 1) for _ in range(8)))
            await until(lambda: len(asyncio.all_tasks()) == 1)
            before = _descriptors()
            await asyncio.gather(*(asyncio.to_thread(talk, way, 25) for _ in range(8)))
            await until(lambda: len(asyncio.all_tasks()) == 1 and _descriptors() <= before)


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - a count
