"""Both ends against the ``websockets`` library's, and against peers that do not behave."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import random
import resource
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from websockets.asyncio.server import ServerConnection, serve
from websockets.sync import server as sync_server
from websockets.utils import accept_key

from hudsim.errors import FrameTooLarge, LinkLost
from hudsim.net import Link, Server, connect
from hudsim.net.frames import BINARY, head
from tests.asyncrun import on_loop, within

MIB = 1 << 20
MESSAGES: list[bytes | str] = [
    "",
    b"",
    "text ✓",
    *(random.Random(n).randbytes(n) for n in (1, 125, 126, 20_000, 65_536)),
]
LARGE = random.Random(5).randbytes(5_000_000)

Loop = Callable[[], asyncio.AbstractEventLoop]
loops = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
secured = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's, and a client's who trusts it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "here")])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    cert = made.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=2))
    (folder / "cert.pem").write_bytes(cert.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    trusting = ssl.create_default_context(cafile=folder / "cert.pem")
    trusting.check_hostname = False
    return serving, trusting


async def echo(link: Link) -> None:
    while True:
        await link.send(await link.receive())


@loops
@secured
def test_a_library_client_hears_what_it_says(loop: Loop, tls: bool, contexts: Any) -> None:
    async def main() -> None:
        server = Server({"/": echo}, bearer=None, tls=contexts[0] if tls else None)
        address = await server.start()
        async with websockets.connect(str(address), max_size=None, ssl=contexts[1] if tls else None) as ws:
            for message in (*MESSAGES, LARGE):
                await ws.send(message)
                assert await ws.recv() == message
            await ws.send([b"in ", b"", LARGE, b"pieces"])
            assert await ws.recv() == b"in " + LARGE + b"pieces"
            await ws.send(["a te", "xt ✓"])
            assert await ws.recv() == "a text ✓"
            assert await (await ws.ping(b"are you there")) >= 0
            await ws.pong(b"unasked")
            await ws.send("goes on")
            assert await ws.recv() == "goes on"
        assert ws.close_code == 1000
        await server.stop()

    within(20, main(), loop)


@loops
@secured
def test_a_library_server_hears_what_it_says(loop: Loop, tls: bool, contexts: Any) -> None:
    async def answer(ws: ServerConnection) -> None:
        async for message in ws:
            if message == "in pieces":
                await ws.send([b"in ", b"", LARGE, b"pieces"])
            elif message == "ping":
                await (await ws.ping(b"x" * 125))
                await ws.send("pong")
            elif message == "close":
                await ws.close(4321, "as you wish")
            else:
                await ws.send(message)

    async def main() -> None:
        async with serve(answer, "127.0.0.1", 0, max_size=None, ssl=contexts[0] if tls else None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            link = await connect(f"{'wss' if tls else 'ws'}://127.0.0.1:{port}/", tls=contexts[1] if tls else None)
            for message in (*MESSAGES, LARGE, bytearray(b"bytes too")):
                await link.send(message)
                assert await link.receive() == message
            await link.send("in pieces")
            assert await link.receive() == b"in " + LARGE + b"pieces"
            await link.send("ping")
            assert await link.receive() == "pong"
            await link.send("close")
            with pytest.raises(LinkLost) as lost:
                await link.receive()
            assert lost.value.data == {"close_code": 4321, "close_reason": "as you wish"}

    within(20, main(), loop)


@loops
@secured
@pytest.mark.parametrize("who", ["client", "server"])
def test_either_end_closes_with_a_code_that_the_library_hears(loop: Loop, tls: bool, who: str, contexts: Any) -> None:
    async def leave(link: Link) -> None:
        await link.send(LARGE)
        await link.close(4400, "so long ✓")

    async def main() -> None:
        if who == "server":
            server = Server({"/": leave}, bearer=None, tls=contexts[0] if tls else None)
            async with websockets.connect(
                str(await server.start()), max_size=None, ssl=contexts[1] if tls else None
            ) as ws:
                assert await ws.recv() == LARGE
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await ws.recv()
            await server.stop()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4400, "so long ✓")
            return
        heard: asyncio.Future[tuple[int | None, str | None]] = asyncio.get_running_loop().create_future()

        async def listen(ws: ServerConnection) -> None:
            assert await ws.recv() == LARGE
            await ws.wait_closed()
            heard.set_result((ws.close_code, ws.close_reason))

        async with serve(listen, "127.0.0.1", 0, max_size=None, ssl=contexts[0] if tls else None) as listening:
            port = next(iter(listening.sockets)).getsockname()[1]
            link = await connect(f"{'wss' if tls else 'ws'}://127.0.0.1:{port}/", tls=contexts[1] if tls else None)
            await leave(link)
            assert await heard == (4400, "so long ✓")

    within(20, main(), loop)


HELLO = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def masked(first: int, payload: bytes = b"") -> bytes:
    return head(first, len(payload), masked=True) + bytes(4) + payload  # a key of zeros changes nothing


@asynccontextmanager
async def rude(
    handler: Callable[[Link], Any], early: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client by hand, after the opening handshake; ``early`` is sent with it."""
    server = Server({"/": handler}, bearer=None, max_frame_bytes=2 * MIB, max_queue=4)
    address = await server.start()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(HELLO + early)
        assert b"101" in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
    finally:
        writer.transport.abort()
        await server.stop()


@on_loop
async def test_frames_that_come_with_the_handshake_are_not_lost() -> None:
    """Neither those of a client that does not wait for the answer, nor those that a server sends behind it."""
    large = bytes(MIB)
    async with rude(echo, masked(BINARY, b"early") + masked(BINARY, large) + masked(BINARY)[:3]) as (reader, writer):
        assert await reader.readexactly(7) == b"\x82\x05early"
        assert (await reader.readexactly(10 + MIB))[10:] == large
        writer.write(masked(BINARY)[3:])
        assert await reader.readexactly(2) == b"\x82\x00"

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        key = next(line.split(": ")[1] for line in request.decode().splitlines() if "-Key" in line)
        accepted = accept_key(key)
        answer = (
            f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accepted}\r\n\r"
        )
        writer.write(answer.encode())
        await asyncio.sleep(0.01)
        writer.write(b"\n\x82\x05early\x88\x02\x03\xe9")
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        link = await connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        assert await link.receive() == b"early"
        with pytest.raises(LinkLost, match="1001"):
            await link.receive()


@on_loop
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x82\x01x", 1002),
        (masked(0x83), 1002),
        (masked(0xC2), 1002),
        (masked(0x80), 1002),
        (masked(0x81, b"\xff"), 1007),
        (head(BINARY, 2 * MIB + 1, masked=True), 1009),
        (masked(0x02, bytes(MIB)) + masked(0x80, bytes(MIB + 1)), 1009),
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_told_and_sent_away(sent: bytes, code: int) -> None:
    ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        try:
            await link.receive()
        except (LinkLost, FrameTooLarge) as lost:
            ended.set_result(lost)

    async with rude(handler) as (reader, writer):
        writer.write(sent)
        assert await reader.readexactly(1) == b"\x88"
        size = (await reader.readexactly(1))[0]
        assert int.from_bytes((await reader.readexactly(size))[:2]) == code
        assert await reader.read() == b"", "the server closes"
        writer.close()
        lost = await ended
        assert isinstance(lost, FrameTooLarge if code == 1009 else LinkLost)
        assert lost.data["close_code"] == code


@on_loop
async def test_an_end_without_a_close_has_no_code_and_loses_nothing() -> None:
    heard: list[bytes | str] = []
    ended: asyncio.Future[LinkLost] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        try:
            while True:
                heard.append(await link.receive())
        except LinkLost as lost:
            ended.set_result(lost)

    async with rude(handler) as (_, writer):
        writer.write(masked(BINARY, b"one") + masked(BINARY, b"half of it")[:-3])
        writer.close()
        assert (await ended).data["close_code"] is None
    assert heard == [b"one"]


@on_loop
async def test_a_peer_that_floods_with_pings_and_reads_nothing_costs_no_memory_and_no_others_time() -> None:
    here: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        here.set_result(link)
        await link.ended()

    async with rude(handler) as (reader, writer):
        link = await here
        stream, reads, most = link._stream, 0, 0
        updated = stream.buffer_updated

        def counted(nbytes: int) -> None:
            nonlocal reads
            reads += 1
            updated(nbytes)

        stream.buffer_updated = counted  # type: ignore[method-assign]
        stream.transport.set_protocol(stream)  # a transport keeps the methods that it found
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flood = masked(0x89, b"") * 10_000 + masked(0x89, b"x" * 125) * 10_000
        for _ in range(10):
            writer.write(flood)
            draining = asyncio.ensure_future(writer.drain())
            while not draining.done():
                reads = 0
                await asyncio.sleep(0)
                most = max(most, reads)
            await draining
        assert most <= 2, "the loop is given back while there is more"
        assert stream.transport.get_write_buffer_size() < 64 << 10
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        writer.write(masked(0x89, b"last"))
        heard = b""
        while b"\x8a\x04last" not in heard:
            heard = heard[-5:] + await reader.read(1 << 16)
            assert heard, "not the end"


@on_loop
async def test_pings_are_not_answered_while_there_is_no_room_and_then_the_newest_is() -> None:
    here: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        here.set_result(link)
        while True:
            await link.receive()

    async with rude(handler) as (reader, writer):
        stream = (await here)._stream
        stream.pause_writing()  # what the transport says when it is full
        for number in range(100):
            writer.write(masked(0x89, b"%03d" % number))
            await asyncio.sleep(0)
        while stream._reader.ping != b"099":  # noqa: ASYNC110 - it is in, and nothing tells
            await asyncio.sleep(0.001)
        stream.resume_writing()
        assert await reader.readexactly(5) == b"\x8a\x03099"


@on_loop
async def test_a_server_answers_a_close_with_the_same_and_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudsim.net.server.CLOSE_TIMEOUT_S", 1000.0)
    async with rude(echo) as (reader, writer):
        writer.write(masked(0x88, b"\x0f\xa0why"))
        assert await reader.read() == b"\x88\x05\x0f\xa0why"
        writer.close()


@on_loop
async def test_nothing_is_sent_after_a_cut() -> None:
    tried: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        link.open_gate()
        link.abort()
        assert not link.send_now([b"never heard"])
        try:
            await link.send(b"never heard")
        except LinkLost as lost:
            tried.set_result(lost)

    async with rude(handler) as (reader, _):
        assert "without a goodbye" in str(await tried)
        assert await reader.read() == b""


@on_loop
async def test_bytes_that_drip_make_a_message() -> None:
    async with rude(echo) as (reader, writer):
        for byte in masked(BINARY, b"drop by drop") + masked(0x89, b"p"):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert await reader.readexactly(17) == b"\x82\x0cdrop by drop\x8a\x01p"


@on_loop
async def test_who_closes_waits_neither_for_room_nor_for_a_peer_that_does_not_answer() -> None:
    here: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        here.set_result(link)
        await link.ended()

    async with rude(handler) as (reader, writer):
        link = await here
        writer.write(masked(BINARY, b"x") * 100)
        await asyncio.sleep(0.1)
        writer.write(masked(BINARY, b"y") * 100 + masked(0x88, b"\x03\xe8"))  # behind what has no room
        await link.close(4000)
        lost, heard = await _end_of(link)
        assert lost.data["close_code"] == 1000, "the peer's close came through"
        assert heard <= 4, "the rest was dropped"
        assert await reader.readexactly(4) == b"\x88\x02\x0f\xa0"
    here = asyncio.get_running_loop().create_future()
    async with rude(handler):
        link = await here
        async with asyncio.timeout(5):
            await link.close(4000)
            with pytest.raises(LinkLost, match="4000"):
                await link.receive()


async def _end_of(link: Link) -> tuple[LinkLost, int]:
    """How it ended, and how many messages came before."""
    heard = 0
    try:
        while True:
            await link.receive()
            heard += 1
    except LinkLost as lost:
        return lost, heard


@on_loop
async def test_a_sender_waits_for_a_peer_that_does_not_read_and_learns_that_it_has_gone() -> None:
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def handler(link: Link) -> None:
        sent = 0
        with contextlib.suppress(LinkLost):
            while True:
                await link.send(LARGE)
                sent += 1
        ended.set_result(sent)

    async with rude(handler) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)
        assert not ended.done()
        writer.transport.abort()
        assert await ended < 10


@on_loop
async def test_two_may_not_receive_at_once_and_one_that_is_cancelled_takes_nothing() -> None:
    async with rude(echo) as (_, writer):
        server = Server({"/": echo}, bearer=None)
        link = await connect(await server.start())
        first = asyncio.create_task(link.receive())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="somebody else"):
            await link.receive()
        first.cancel()
        await asyncio.wait([first])
        await link.send("kept")
        second = asyncio.create_task(link.receive())
        while not (link._stream._reader.messages or second.done()):  # noqa: ASYNC110 - in, and its receiver has not run
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        if second.cancelled():
            assert await link.receive() == "kept"
        await link.close()
        await server.stop()
        writer.close()


@contextlib.contextmanager
def quick() -> Iterator[str]:
    """The address of a server of another thread, which answers at once; "close" closes, "cut" cuts."""

    def answer(ws: sync_server.ServerConnection) -> None:
        for message in ws:
            if message == "close":
                return
            if message == "cut":
                ws.socket.close()
                return
            if message == "ping":
                ws.ping()
            ws.send(message)

    with sync_server.serve(answer, "127.0.0.1", 0, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        server.shutdown()
        thread.join(5)


@on_loop
async def test_whoever_stays_awake_for_answers_hears_all_and_leaves_the_loop_its_turns() -> None:
    turns, over = 0, asyncio.Event()

    async def other() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    with quick() as address:
        link = await connect(address)
        task = asyncio.create_task(other())
        for at in range(300):
            for message in (f"{at}", "ping", LARGE) if at % 30 == 0 else (f"{at}",):
                await link.send(message)
                assert await link.receive() == message
        over.set()
        await task
        assert turns >= 300
        await link.send("close")
        with pytest.raises(LinkLost) as lost:
            await link.receive()
        assert lost.value.data["close_code"] == 1000


@on_loop
async def test_bytes_that_go_on_coming_without_a_message_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    pulls = 0

    def pull() -> int:
        nonlocal pulls
        pulls += 1
        return 1  # a flood of pongs, or a long message in small pieces

    with quick() as address:
        link = await connect(address)
        monkeypatch.setattr(link._stream, "_pull", pull)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await link.receive()
        assert pulls > 1
        link.abort()


@on_loop
async def test_whoever_stays_awake_notices_that_the_peer_is_gone() -> None:
    with quick() as address:
        link = await connect(address)
        for message in ("a", "b", "c"):
            await link.send(message)
            assert await link.receive() == message
        await link.send("cut")
        with pytest.raises(LinkLost):
            await link.receive()


@on_loop
async def test_many_that_wait_on_one_loop_do_not_hold_each_other_up() -> None:
    """Nobody stays awake for his own answer while another's may be there."""
    with quick() as address:
        links = [await connect(address) for _ in range(8)]

        async def talk(link: Link) -> None:
            for at in range(100):
                await link.send(f"{at}")
                assert await link.receive() == f"{at}"

        await asyncio.gather(*map(talk, links))
        await asyncio.gather(*(link.close() for link in links))
