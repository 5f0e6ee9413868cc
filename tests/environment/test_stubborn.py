"""Templates and hooks that end in no usual way, or not at all: callers are answered, and the server stops."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hudsim.environment import ControlClient, Environment, EnvironmentServer
from hudsim.errors import EnvironmentFailed, LinkLost, NoTask, ShuttingDown, TemplateError
from hudsim.graders import EvaluationResult
from hudsim.net import connect
from tests.asyncrun import on_loop
from tests.environment.served import Slow, letters, serving
from tests.stubborn import stubborn


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for constant in ("play.CLOSE_S", "turn.CLOSE_S", "attached._FREE_S", "environment._STOP_S"):
        monkeypatch.setattr(f"hudsim.environment.{constant}", 0.1)
    monkeypatch.setattr("hudsim.loop.bounded._GRACE_S", 0.1)


class UnheardError(BaseException):
    """Of no known kind, and without words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def played(control: ControlClient, task: str) -> None:
    """Started, and graded."""
    await control.start(task)
    await control.grade()


RAISED = [UnheardError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, ValueError]


@pytest.mark.parametrize("phase", ["start", "grade", "clean up"])
@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
@on_loop
async def test_whatever_a_template_raises_is_a_template_error_and_the_server_goes_on(
    phase: str, kind: type[BaseException]
) -> None:
    env = letters()

    @env.template()
    async def raises() -> AsyncGenerator[Any, Any]:
        for now, value in (("start", "prompt"), ("grade", 1.0), ("clean up", None)):
            if now == phase:
                raise kind
            yield value

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        async with asyncio.timeout(10.0):
            with pytest.raises(TemplateError, match=f"letters/raises raised {kind.__name__}.*to {phase}"):
                await played(control, "raises")
            await control.start("count", {"word": "r"})
            assert (await control.grade("1"))["score"] == 1.0


@on_loop
async def test_what_a_template_raises_as_it_is_closed_is_its_own() -> None:
    env = letters()

    @env.template()
    async def leaves() -> AsyncGenerator[Any, Any]:
        try:
            yield "prompt"
        finally:
            sys.exit(3)

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        await control.start("leaves")
        assert await control.cancel()
        await control.start("count", {"word": "r"})


@on_loop
async def test_a_template_that_cancels_its_own_task_is_a_template_error() -> None:
    env = Environment("odd")

    @env.template()
    async def hara_kiri() -> AsyncGenerator[Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        yield "prompt"

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        with pytest.raises(TemplateError, match="odd/hara_kiri cancelled its own task"):
            await control.start("hara_kiri")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def holding(value: Any) -> EvaluationResult:
    """A reward with ``value`` put into its info afterwards; None: itself."""
    result = EvaluationResult(reward=1.0)
    result.info["x"] = result.info if value is None else value
    return result


@pytest.mark.parametrize(
    ("prompt", "grade"),
    [
        (nested(5000), 1.0),
        ("prompt", holding(object())),
        ("prompt", holding(nested(5000))),
        ("prompt", holding(None)),
    ],
    ids=["deep prompt", "object", "deep grade", "circular"],
)
@on_loop
async def test_what_cannot_be_said_is_answered_nevertheless(prompt: Any, grade: Any) -> None:
    env = letters()

    @env.template()
    async def says() -> AsyncGenerator[Any, Any]:
        yield prompt
        yield grade

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        async with asyncio.timeout(10.0):
            with pytest.raises(TemplateError, match=r"letters/says (yielded|graded with) .* no plain JSON"):
                await played(control, "says")
            await control.start("count", {"word": "r"})


class Mule:
    """``env``'s template does not let itself be stopped where ``where`` says, until ``released``."""

    def __init__(self, where: str) -> None:
        self.released = asyncio.Event()
        self.env = letters()

        @self.env.template()
        async def mule() -> AsyncGenerator[Any, Any]:
            try:
                if where == "start":
                    await stubborn(self.released)
                yield "prompt"
                if where == "grade":
                    await stubborn(self.released)
                yield 1.0
            finally:
                if where == "close":
                    await stubborn(self.released)

    async def until_it_is_stuck(self, control: ControlClient, where: str) -> asyncio.Task[Any]:
        """A call under way to where it does not return from."""
        if where == "start":
            call: Awaitable[Any] = control.start("mule")
        else:
            await control.start("mule")
            call = control.grade() if where == "grade" else control.cancel()
        calling = asyncio.ensure_future(call)
        await asyncio.sleep(0.05)
        return calling

    async def go(self) -> None:
        """Let it end, and everything that waits for it."""
        self.released.set()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("where", ["start", "grade", "close"])
@on_loop
async def test_a_template_that_cannot_be_stopped_is_left_behind_and_the_session_goes_on(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    mule = Mule(where)
    async with serving(mule.env) as server, await ControlClient.connect(server.address) as control:
        async with asyncio.timeout(10.0):
            calling = await mule.until_it_is_stuck(control, where)
            await control.start("count", {"word": "rr"})
            await asyncio.wait({calling})
            if where == "close":
                assert calling.result()
            else:
                assert isinstance(calling.exception(), NoTask)
            await mule.go()
            assert (await control.grade("2"))["score"] == 1.0, "what was left behind is not this task's"
        assert "letters/mule does not let itself be stopped; it is left behind" in caplog.text


@pytest.mark.parametrize("where", ["start", "grade", "close"])
@on_loop
async def test_a_template_that_cannot_be_stopped_does_not_keep_the_server_from_stopping(where: str) -> None:
    mule = Mule(where)
    server = EnvironmentServer(mule.env, bearer="x")
    control = await ControlClient.connect(await server.start(), reconnect_s=0.1)
    calling = await mule.until_it_is_stuck(control, where)
    async with asyncio.timeout(10.0):
        await server.stop()
        await asyncio.wait({calling})
    if where != "close":
        assert isinstance(calling.exception(), ShuttingDown)
    await control.drop()
    await mule.go()


@pytest.mark.parametrize("phase", ["starting", "grading"])
@on_loop
async def test_what_a_stopping_server_cancels_says_so(phase: str) -> None:
    for _ in range(20):
        slow = Slow()
        async with serving(slow.env) as server:
            control = await ControlClient.connect(server.address)
            if phase == "grading":
                slow.start.set()
                await control.start("wait")
            calling = asyncio.create_task(control.start("wait") if phase == "starting" else control.grade())
            await slow.reached(phase)
        with pytest.raises(ShuttingDown, match="going down"):
            await calling
        await control.drop()


@asynccontextmanager
async def hooked(**hooks: Callable[[], Awaitable[None]]) -> AsyncIterator[EnvironmentServer]:
    env = letters()
    for kind, hook in hooks.items():

        async def run(hook: Callable[[], Awaitable[None]] = hook) -> None:
            await hook()

        getattr(env, kind)(run)
    yield EnvironmentServer(env, bearer="x")


@on_loop
async def test_a_start_that_cannot_be_stopped_is_left_behind_when_its_caller_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = asyncio.Event()
    async with hooked(initialize=lambda: stubborn(released)) as server, asyncio.timeout(10.0):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await server.start()
    assert "an initialize hook of environment letters does not let itself be stopped" in caplog.text
    released.set()
    await asyncio.sleep(0)


@on_loop
async def test_a_shutdown_that_cannot_be_stopped_is_left_behind_and_the_others_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released, ran = asyncio.Event(), asyncio.Event()
    async with hooked(shutdown=lambda: stubborn(released)) as server, asyncio.timeout(10.0):

        @server.environment.initialize
        async def up() -> None:
            """Nothing."""

        first = server.environment._down.pop()

        @server.environment.shutdown
        async def down() -> None:
            ran.set()

        server.environment.shutdown(first)
        await server.start()
        await server.stop()
        assert ran.is_set()
    assert "a shutdown hook of environment letters does not let itself be stopped" in caplog.text
    released.set()
    await asyncio.sleep(0)


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
@on_loop
async def test_whatever_a_hook_raises_the_process_goes_on(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def raises() -> None:
        raise kind

    async with hooked(initialize=raises) as server:
        with pytest.raises(EnvironmentFailed, match=f"letters did not start: {kind.__name__}"):
            await server.start()
    async with hooked(shutdown=raises) as server:
        await server.start()
        await server.stop()
    assert f"a shutdown hook raised {kind.__name__}" in caplog.text


@pytest.fixture
def unawaited() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@pytest.mark.parametrize("second", ["tasks.start", "tasks.cancel", "bye"])
@on_loop
async def test_a_start_that_is_overtaken_at_once_leaves_nothing_unawaited(
    second: str, unawaited: list[warnings.WarningMessage]
) -> None:
    async with serving(letters()) as server:
        link = await connect(server.address.at("/control"))
        params = {"id": "count", "args": {"word": "r"}}
        calls = [{"id": 1, "method": "tasks.start", "params": params}, {"id": 2, "method": second}]
        if second == "tasks.start":
            calls[1]["params"] = params
        for call in calls:
            await link.send(json.dumps(call))
        replies = {reply["id"]: reply for reply in [json.loads(await link.receive()) for _ in calls]}
        assert replies[1].get("result") or replies[1]["error"]["data"]["name"] == "no_task"
        assert "result" in replies[2]
        await link.close()
    gc.collect()
    assert not [str(warning.message) for warning in unawaited if "never awaited" in str(warning.message)]


@on_loop
async def test_many_starts_at_once_leave_one_task() -> None:
    async with serving(letters()) as server, await ControlClient.connect(server.address) as control:
        words = [f"{'r' * n}" for n in range(1, 21)]
        starts = [asyncio.create_task(control.start("count", {"word": word})) for word in words]
        ended = await asyncio.gather(*starts, return_exceptions=True)
        assert all(isinstance(end, dict | NoTask) for end in ended)
        won = [word for word, end in zip(words, ended, strict=True) if isinstance(end, dict)][-1]
        assert (await control.grade(str(len(won))))["score"] == 1.0


@on_loop
async def test_a_template_that_loses_a_link_of_its_own_is_asked_once() -> None:
    env = Environment("remote")
    asked: list[str] = []

    @env.template()
    async def daemon() -> AsyncGenerator[Any, Any]:
        asked.append("start")
        if asked:
            raise LinkLost("the daemon hung up")
        yield "prompt"

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        with pytest.raises(LinkLost, match="the daemon hung up"):
            await control.start("daemon")
        assert asked == ["start"]
        assert control.resumes == 0
        assert await control.list_tasks()
