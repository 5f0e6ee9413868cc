"""A client whose link breaks: how often it dials again, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hudsim.environment import ControlClient
from hudsim.errors import LinkLost
from hudsim.net import Link, Server, serve_rpc
from tests.asyncrun import on_loop
from tests.environment.served import Slow, letters, serving
from tests.environment.test_control import cut


class Fickle:
    """Greets, and cuts the link at the first call for ``cuts`` times. ``dials``: how often it was dialled."""

    def __init__(self, cuts: int) -> None:
        self.cuts, self.dials = cuts, 0

    async def control(self, link: Link) -> None:
        self.dials += 1

        async def hello(session_id: str | None, park_s: float, host: str) -> dict[str, object]:
            env = {"name": "fickle", "version": "1"}
            return {"protocol": "hudsim-control/1", "session_id": "s", "env": env, "capabilities": [], "passes": {}}

        async def list_tasks() -> dict[str, object]:
            if self.cuts:
                self.cuts -= 1
                link.abort()
            return {"tasks": [{"id": "one"}]}

        await serve_rpc(link, {"hello": hello, "tasks.list": list_tasks})


@asynccontextmanager
async def dialled(fickle: Fickle, *, reconnect_s: float = 10.0) -> AsyncIterator[ControlClient]:
    server = Server({"/control": fickle.control}, bearer=None)
    client = await ControlClient.connect(await server.start(), reconnect_s=reconnect_s)
    try:
        yield client
    finally:
        await client.drop()
        await server.stop()


@on_loop
async def test_a_link_that_breaks_is_dialled_again_and_that_is_counted() -> None:
    fickle = Fickle(cuts=3)
    async with dialled(fickle) as control:
        assert control.resumes == 0
        assert await control.list_tasks() == [{"id": "one"}]
        assert control.resumes == 3
        assert fickle.dials == 4


@on_loop
async def test_a_call_whose_links_break_at_once_is_given_up_after_its_time() -> None:
    fickle = Fickle(cuts=10**9)
    async with dialled(fickle, reconnect_s=1.0) as control:
        async with asyncio.timeout(10.0):
            with pytest.raises(LinkLost):
                await control.list_tasks()
        assert 2 <= fickle.dials <= 10, "each time later than the last"


@on_loop
async def test_a_call_whose_links_break_at_once_is_given_up_after_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudsim.environment.client._LONGEST_PAUSE_S", 0.0)
    fickle = Fickle(cuts=10**9)
    async with dialled(fickle, reconnect_s=60.0) as control:
        with pytest.raises(LinkLost):
            await control.list_tasks()
        assert control.resumes == 20
        assert fickle.dials == 21


@on_loop
async def test_links_that_hold_for_a_while_are_dialled_again_for_as_long_as_a_call_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hudsim.environment.client._HELD_S", 0.02)
    monkeypatch.setattr("hudsim.environment.client._MOST_RESUMES", 3)
    slow = Slow()
    async with serving(slow.env) as server, await ControlClient.connect(server.address, reconnect_s=5.0) as control:
        starting = asyncio.create_task(control.start("wait"))
        await slow.reached("starting")
        for number in range(8):
            await asyncio.sleep(0.1)
            cut(control)
            async with asyncio.timeout(5.0):
                while control.resumes == number:  # noqa: ASYNC110 - nobody says when
                    await asyncio.sleep(0.01)
        slow.start.set()
        assert (await starting)["prompt"] == "wait"
    assert slow.log.count("starting") == 1


@on_loop
async def test_a_session_that_is_not_there_any_more_is_a_lost_link() -> None:
    async with serving(letters()) as server:
        address = server.address
        control = await ControlClient.connect(address)
        await control.start("count", {"word": "r"})
        assert control.session_id is not None
        entry = server._control._entries[control.session_id]
        cut(control)
        await asyncio.wait({server._control.end(entry)})
        with pytest.raises(LinkLost, match="cannot be resumed: no session"):
            await control.grade("1")
        await control.drop()
