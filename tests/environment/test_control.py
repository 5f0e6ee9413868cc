"""The control channel, both ends over a real port: sessions that are parked, resumed and ended."""

from __future__ import annotations

import asyncio

import pytest

from hudsim.capability import Capability
from hudsim.environment import ControlClient, Environment
from hudsim.errors import (
    BearerError,
    ConnectError,
    HudsimError,
    LinkLost,
    NoSuchCapability,
    NoTask,
    ShuttingDown,
    TaskError,
    UnknownName,
    UsageError,
)
from hudsim.net import RpcClient, connect
from tests.asyncrun import on_loop
from tests.environment.served import BEARER, Slow, letters, serving


@on_loop
async def test_a_task_is_started_and_graded() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        assert control.environment == "letters"
        started = await control.start("count", {"word": "strawberry"})
        assert started["prompt"] == "How many 'r' are in 'strawberry'?"
        assert (await control.grade("3"))["score"] == 1.0
        await control.start("count", {"word": "strawberry"})
        assert (await control.grade("2"))["score"] == 0.0


@on_loop
async def test_the_tasks_are_listed_with_what_they_take() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        (task,) = await control.list_tasks()
        assert task["id"] == "count"
        assert set(task["args"]["properties"]) == {"word", "letter"}


@on_loop
async def test_wrong_names_and_arguments_are_typed_and_say_what_there_is() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        with pytest.raises(UnknownName, match=r"no task in environment letters 'cuont'; did you mean 'count'"):
            await control.start("cuont")
        with pytest.raises(
            UnknownName, match=r"no argument of count 'wrod'; did you mean 'word'\? There are: letter, word"
        ):
            await control.start("count", {"wrod": "x"})
        with pytest.raises(UsageError, match=r"argument word is missing\. It takes word: str, letter: str = 'r'"):
            await control.start("count")
        with pytest.raises(NoTask, match=r"expected tasks\.start before it"):
            await control.grade("3")
        with pytest.raises(NoSuchCapability, match=r"nothing is served at /tunnel/shell\. There are: /control"):
            await connect(server.address.at("/tunnel/shell"))


@on_loop
async def test_a_wrong_bearer_and_a_closed_port_are_typed() -> None:
    async with serving(letters()) as server:
        address = server.address
        with pytest.raises(BearerError, match="wrong bearer"):
            await ControlClient.connect(address.url.replace(BEARER, "another"))
        with pytest.raises(BearerError, match="no bearer"):
            await ControlClient.connect(f"ws://{address.netloc}/")
    with pytest.raises(ConnectError, match="connection refused"):
        await ControlClient.connect(address)


@on_loop
async def test_a_grade_is_given_once() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        await control.start("count", {"word": "r"})
        await control.grade("1")
        with pytest.raises(NoTask):
            await control.grade("1")


@on_loop
async def test_a_session_that_was_left_behind_is_resumed_by_its_id() -> None:
    async with serving(letters()) as server:
        first = await ControlClient.connect(server.address)
        await first.start("count", {"word": "strawberry"})
        await first.drop()
        async with await ControlClient.connect(server.address, session_id=first.session_id) as second:
            assert second.state == "started"
            assert (await second.grade("3"))["score"] == 1.0


@on_loop
async def test_a_goodbye_ends_the_session() -> None:
    async with serving(letters()) as server:
        first = await ControlClient.connect(server.address)
        await first.close()
        with pytest.raises(TaskError, match="no session"):
            await ControlClient.connect(server.address, session_id=first.session_id)


@on_loop
async def test_a_parked_session_ends_when_its_time_is_up_and_its_template_is_closed() -> None:
    slow = Slow()
    slow.start.set()
    async with serving(slow.env) as server:
        control = await ControlClient.connect(server.address, park_s=0.05)
        await control.start("wait")
        await control.drop()
        await slow.reached("closed")
        with pytest.raises(TaskError, match="no session"):
            await ControlClient.connect(server.address, session_id=control.session_id)
        assert "grading" not in slow.log


@on_loop
async def test_a_call_that_loses_its_link_dials_again_and_nothing_is_done_twice() -> None:
    slow = Slow()
    async with serving(slow.env) as server, await ControlClient.connect(server.address) as control:
        starting = asyncio.create_task(control.start("wait"))
        await slow.reached("starting")
        cut(control)
        slow.start.set()
        assert (await starting)["prompt"] == "wait"
        grading = asyncio.create_task(control.grade())
        await slow.reached("grading")
        cut(control)
        await asyncio.sleep(0.05)
        slow.grade.set()
        assert (await grading)["score"] == 1.0
    assert slow.log == ["starting", "started", "grading", "graded", "closed"]


def cut(control: ControlClient) -> None:
    """Cut its link without a word."""
    assert control._rpc is not None
    control._rpc._link.abort()


@on_loop
async def test_a_link_to_a_server_that_is_gone_ends_typed() -> None:
    slow = Slow()
    async with serving(slow.env) as server:
        control = await ControlClient.connect(server.address, reconnect_s=0.3)
        starting = asyncio.create_task(control.start("wait"))
        await slow.reached("starting")
    with pytest.raises((LinkLost, ShuttingDown)):
        await starting
    await control.close()
    assert slow.log == ["starting", "closed"]


@on_loop
async def test_a_second_start_cancels_the_first() -> None:
    slow = Slow()
    slow.start.set()
    async with serving(slow.env) as server, await ControlClient.connect(server.address) as control:
        await control.start("wait")
        await control.start("wait")
        assert slow.log == ["starting", "started", "closed", "starting", "started"]
        assert await control.cancel()
        assert not await control.cancel()
        assert slow.log[-1] == "closed"


@on_loop
async def test_two_sessions_of_one_environment_do_not_meet() -> None:
    async with (
        serving(letters()) as server,
        await ControlClient.connect(server.address) as one,
        await ControlClient.connect(server.address) as other,
    ):
        await one.start("count", {"word": "r"})
        await other.start("count", {"word": "rr"})
        assert (await one.grade("1"))["score"] == 1.0
        assert (await other.grade("2"))["score"] == 1.0


@on_loop
async def test_references_are_kept_back_unless_the_server_reveals_them() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        await control.start("count", {"word": "strawberry"})
        with pytest.raises(TaskError, match="served without its references"):
            await control.reference()
    async with serving(letters(), reveal=True) as server, await ControlClient.connect(server.address) as control:
        with pytest.raises(NoTask):
            await control.reference()
        await control.start("count", {"word": "strawberry"})
        assert await control.reference() == "3"


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tasks.begin", {}, "no method 'tasks.begin'"),
        ("hello", {"park_s": -1}, "park_s: got -1"),
        ("hello", {"park_s": "long"}, "park_s: got 'long'"),
        ("hello", {"session_id": "nobody"}, "no session 'nobody'"),
        ("hello", {"session_id": "x" * 3_000_000}, "no session 'x{80}'"),
        ("hello", {"session_id": []}, r"session_id: got \[\], expected what an earlier hello said"),
        ("hello", {"session_id": 5}, "session_id: got 5"),
        ("tasks.start", {"id": 3}, "id: got 3, expected a task's id"),
        ("tasks.start", {"id": {"a": 1}}, "id: got {'a': 1}, expected a task's id"),
        ("tasks.start", {"id": "x" * 3_000_000}, "no task in environment letters 'x{80}…'. There are: count"),
        ("tasks.start", {"id": "count", "key": [1]}, r"key: got \[1\], expected a text of 80 characters at most"),
        ("tasks.grade", {"key": "x" * 3_000_000}, "key: got 'xxx"),
        ("tasks.start", {"id": "count", "args": [1]}, "args: got a list"),
        ("tasks.start", {"name": "count"}, "unknown name; it takes id, args, key"),
    ],
    ids=lambda value: str(value)[:40],
)
@on_loop
async def test_a_call_that_is_none_is_answered_in_words(method: str, params: dict[str, object], words: str) -> None:
    async with serving(letters()) as server:
        rpc = RpcClient(await connect(server.address.at("/control")))
        with pytest.raises(HudsimError, match=words) as refused:
            await rpc.call(method, timeout_s=5.0, **params)
        assert len(refused.value.message) < 300
        assert (await rpc.call("tasks.list", timeout_s=5.0))["tasks"]
        await rpc.close()


@on_loop
async def test_hooks_run_around_serving_and_the_last_shutdown_first() -> None:
    env = Environment("hooks")
    log: list[str] = []

    @env.initialize
    async def up() -> None:
        log.append("up")
        env.add_capability(Capability.mcp(url="http://127.0.0.1:9/mcp"))

    @env.shutdown
    async def first() -> None:
        log.append("first")

    @env.shutdown
    async def second() -> None:
        log.append("second")
        raise OSError("it was gone")

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        assert control.capabilities["mcp"].protocol == "mcp"
    assert log == ["up", "second", "first"]


@on_loop
async def test_a_session_that_is_taken_up_tells_the_task_that_it_has_started() -> None:
    async with serving(letters()) as server:
        control = await ControlClient.connect(server.address)
        with pytest.raises(NoTask, match="has no task to be worked on: it is idle"):
            await control.current()
        started = await control.start("count", {"word": "strawberry"})
        await control.drop()
        async with await ControlClient.connect(server.address, session_id=control.session_id) as again:
            current = await again.current()
            assert current == {"id": "count", "args": {"word": "strawberry"}, **started}
            await again.grade("3")
            with pytest.raises(NoTask, match="has no task to be worked on: it is idle"):
                await again.current()


@on_loop
async def test_whoever_has_the_token_sees_all_sessions_and_can_end_them() -> None:
    slow = Slow()
    async with serving(slow.env) as server, await ControlClient.connect(server.address) as control:
        other = await ControlClient.connect(server.address)
        starting = asyncio.create_task(other.start("wait"))
        await slow.reached("starting")
        own, theirs = await control.sessions()
        assert own == {
            "session": control.session_id,
            "state": "idle",
            "task": None,
            "connected": True,
            "ends_in_s": None,
        }
        assert (theirs["session"], theirs["state"], theirs["task"]["id"]) == (other.session_id, "working", "wait")
        (alone,) = await control.sessions(other.session_id)
        assert alone["session"] == other.session_id
        assert await control.cancel_session(str(other.session_id)) is True
        with pytest.raises(NoTask, match=f"session {other.session_id} was cancelled by another one"):
            await starting
        assert slow.log == ["starting", "closed"]
        for call in (control.sessions, control.cancel_session):
            with pytest.raises(TaskError, match=f"no session '{other.session_id}' here"):
                await call(str(other.session_id))
        await other.close()
        assert [session["session"] for session in await control.sessions()] == [control.session_id]
