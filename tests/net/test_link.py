"""How a link ends, and how that shows to whoever does not receive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hudsim.errors import ConnectError, FrameTooLarge, LinkLost
from hudsim.net import UNREACHABLE, Link, Server, connect
from tests.asyncrun import on_loop

MIB = 1 << 20


@asynccontextmanager
async def linked(max_queue: int | None = None) -> AsyncIterator[tuple[Link, Link]]:
    """Both ends of a link: the client's and the server's."""
    here: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    async def hold(link: Link) -> None:
        here.set_result(link)
        await link.ended()

    server = Server({"/": hold}, bearer=None, max_frame_bytes=2 * MIB)
    try:
        link = await connect(await server.start(), max_queue=max_queue)
        yield link, await here
        await link.close()
    finally:
        await server.stop()


@on_loop
async def test_an_end_tells_its_code_and_reason() -> None:
    async with linked() as (near, far):
        await far.close(4408, "policy_deadline")
        with pytest.raises(LinkLost, match="closed the connection with 4408 policy_deadline") as lost:
            await near.receive()
        assert lost.value.data == {"close_code": 4408, "close_reason": "policy_deadline"}


@on_loop
async def test_a_peer_that_could_not_reach_what_is_behind_it_is_a_connect_error() -> None:
    async with linked() as (near, far):
        await far.close(UNREACHABLE, "127.0.0.1:22: connection refused")
        with pytest.raises(ConnectError, match=r"cannot reach 127\.0\.0\.1:22: connection refused") as lost:
            await near.receive()
        assert lost.value.data["close_code"] == 4502
        with pytest.raises(ConnectError):
            await near.send(b"x")


@on_loop
async def test_a_frame_too_large_tells_its_code_too() -> None:
    async with linked() as (near, far):
        await near.send(bytes(2 * MIB + 1))
        for end in (near, far):
            with pytest.raises(FrameTooLarge) as refused:
                await end.receive()
            assert refused.value.data["close_code"] == 1009


@on_loop
@pytest.mark.parametrize("end", [Link.abort, Link.reset])
async def test_a_cut_has_no_code(end: Callable[[Link], None]) -> None:
    async with linked() as (near, far):
        end(far)
        end(far)
        with pytest.raises(LinkLost, match="gone without a goodbye") as lost:
            await near.receive()
        assert lost.value.data["close_code"] is None


@on_loop
async def test_a_reset_shows_though_nobody_receives_and_the_way_is_full() -> None:
    async with linked(max_queue=1) as (near, far):
        sending = asyncio.create_task(_fill(far, 1000, []))
        await asyncio.sleep(0.3)
        assert near.gone() is None
        assert far.gone() is None
        far.reset()
        async with asyncio.timeout(5.0):
            while near.gone() is None:  # noqa: ASYNC110 - that nobody is told is the point
                await asyncio.sleep(0.01)
            await far.ended()
        with pytest.raises(LinkLost):
            await sending
        assert isinstance(far.gone(), LinkLost)


@on_loop
async def test_a_close_under_way_shows_at_once() -> None:
    async with linked() as (near, far):
        closing = asyncio.create_task(near.close(4409))
        await asyncio.sleep(0)
        assert isinstance(near.gone(), LinkLost)
        await closing
        await far.ended()
        found = far.gone()
        assert found is not None
        assert found.data["close_code"] == 4409


async def _fill(link: Link, count: int, sent: list[int]) -> None:
    for number in range(count):
        await link.send(bytes(MIB))
        sent.append(number)


@on_loop
@pytest.mark.parametrize(("max_queue", "stops"), [(2, True), (None, False)])
async def test_a_receiver_with_a_bound_stops_its_sender(max_queue: int | None, stops: bool) -> None:
    async with linked(max_queue) as (near, far):
        sent: list[int] = []
        filling = asyncio.create_task(_fill(far, 60, sent))
        if stops:
            await asyncio.sleep(0.5)
            assert len(sent) < 50
        else:
            await filling
        for _ in range(60):
            assert len(await near.receive()) == MIB
        await filling


async def _seven() -> int:
    await asyncio.sleep(0)
    return 7


async def _fails() -> int:
    raise ConnectError("no")


@on_loop
async def test_work_is_done_while_the_link_is_open() -> None:
    async with linked() as (near, _):
        assert await near.while_open(_seven()) == 7
        with pytest.raises(ConnectError, match="no"):
            await near.while_open(_fails())


@on_loop
@pytest.mark.parametrize("stop", ["link", "caller"])
async def test_work_is_cancelled_when_the_link_or_its_caller_ends(stop: str) -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async with linked() as (near, far):
        working: asyncio.Task[None] = asyncio.create_task(near.while_open(work()))
        await asyncio.sleep(0.05)
        if stop == "link":
            await far.close(1001)
            with pytest.raises(LinkLost, match="1001"):
                await working
        else:
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
        assert cancelled.is_set()
