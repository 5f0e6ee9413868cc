"""What crosses a link that carries a TCP connection, frame by frame."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hudsim.errors import LinkLost
from hudsim.net import Link, Server, connect, splice
from tests.asyncrun import on_loop


@asynccontextmanager
async def spliced() -> AsyncIterator[tuple[Link, socket.socket, asyncio.Future[BaseException | None]]]:
    """The link's other end and the socket's, and how the splice between them ends."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    ended: asyncio.Future[BaseException | None] = loop.create_future()

    async def carry(link: Link) -> None:
        try:
            await splice(link, near)
        except (Exception, asyncio.CancelledError) as error:
            ended.set_result(error)
        else:
            ended.set_result(None)

    server = Server({"/": carry}, bearer=None)
    link = await connect(await server.start())
    try:
        with near, far:
            yield link, far, ended
    finally:
        await link.close()
        await server.stop()


@on_loop
async def test_bytes_are_binary_frames_and_ends_are_words() -> None:
    loop = asyncio.get_running_loop()
    async with spliced() as (link, far, ended):
        await link.send(b"ping")
        assert await loop.sock_recv(far, 100) == b"ping"
        await loop.sock_sendall(far, b"pong")
        assert await link.receive() == b"pong"
        await link.send("eof")
        assert await link.receive() == "done"
        assert await loop.sock_recv(far, 100) == b""
        far.shutdown(socket.SHUT_WR)
        assert await link.receive() == "eof"
        assert not ended.done()
        await link.send("done")
        assert await ended is None
        with pytest.raises(LinkLost, match="1000"):
            await link.receive()


@on_loop
async def test_the_socket_may_end_first() -> None:
    loop = asyncio.get_running_loop()
    async with spliced() as (link, far, ended):
        far.shutdown(socket.SHUT_WR)
        assert await link.receive() == "eof"
        await link.send("done")
        await link.send(b"more")
        assert await loop.sock_recv(far, 100) == b"more"
        await link.send("eof")
        assert await link.receive() == "done"
        assert await ended is None


@on_loop
async def test_an_empty_frame_is_no_end() -> None:
    loop = asyncio.get_running_loop()
    async with spliced() as (link, far, _):
        await link.send(b"")
        await link.send(b"x")
        assert await loop.sock_recv(far, 100) == b"x"


@on_loop
@pytest.mark.parametrize(
    ("frames", "got"),
    [
        (["hello"], "the text 'hello'"),
        (["eof", b"abc"], "3 bytes"),
        (["eof", "eof"], "the text 'eof'"),
        (["done", "done"], "the text 'done'"),
    ],
)
async def test_what_is_not_expected_is_refused_by_name(frames: list[str | bytes], got: str) -> None:
    async with spliced() as (link, _, ended):
        for frame in frames:
            await link.send(frame)
        if frames[0] == "eof":
            assert await link.receive() == "done"
        with pytest.raises(LinkLost, match=f"4400 got {got}"):
            await link.receive()
        assert f"got {got}" in str(await ended)


@on_loop
async def test_a_link_that_is_closed_too_early_ends_in_its_error() -> None:
    async with spliced() as (link, far, ended):
        await link.close()
        assert isinstance(await ended, LinkLost)
        assert await asyncio.get_running_loop().sock_recv(far, 100) == b""


@on_loop
async def test_a_splice_that_is_cancelled_leaves_nothing_open() -> None:
    async def carry(link: Link) -> None:
        near, far = socket.socketpair()
        with far:
            near.setblocking(False)
            carrying = asyncio.create_task(splice(link, near))
            await asyncio.sleep(0.05)
            carrying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await carrying
            assert near.fileno() == -1

    server = Server({"/": carry}, bearer=None)
    link = await connect(await server.start())
    with pytest.raises(LinkLost, match="gone without a goodbye"):
        await link.receive()
    await server.stop()
