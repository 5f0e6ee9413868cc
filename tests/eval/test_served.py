"""Jobs against what somebody else serves: looked at once before anything runs, and heard of while they wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudsim.agents import Noop, Oracle
from hudsim.bridge import Bridge, Episode
from hudsim.capability import Capability
from hudsim.environment import ControlClient, Environment, Task
from hudsim.errors import BearerError, ConnectError, LinkError, UnknownName, UsageError
from hudsim.eval import Limits, LocalRuntime, Run, Runtime, Shared, Taskset, Verdict, rollout
from hudsim.eval import waiting as waiting_module
from tests.asyncrun import on_loop
from tests.environment.served import BEARER, letters, serving
from tests.eval.keeping import names


def some() -> Taskset:
    return Taskset("some", [Task(env="letters", id="count", args={"word": word}) for word in ("mirror", "river")])


@on_loop
async def test_a_server_that_does_not_let_us_in_is_said_once_and_no_job_is_kept(tmp_path: Path) -> None:
    async with serving(letters()) as server:
        url = server.address.url
        wrong: list[tuple[Runtime, type[LinkError]]] = [
            (Runtime(url, token="another"), BearerError),
            (Runtime("ws://127.0.0.1:1/"), ConnectError),
        ]
        for runtime, error in wrong:
            with pytest.raises(error) as refused:
                await some().run(Noop(), runtime=runtime, runs=tmp_path)
            assert BEARER not in refused.value.message
    assert names(tmp_path) == []


@on_loop
async def test_references_that_are_kept_back_are_said_once_wherever_the_environment_runs(tmp_path: Path) -> None:
    env = letters()
    async with serving(env) as server:
        runtimes: list[Any] = [Runtime(server.address.url), LocalRuntime(env), Shared(LocalRuntime(env), width=1)]
        for runtime in runtimes:
            with pytest.raises(UsageError, match=r"needs the tasks' references, and .* is served without"):
                await some().run(Oracle(), runtime=runtime, runs=tmp_path)
    assert names(tmp_path) == []
    async with serving(letters(), reveal=True) as server:
        job = await some().run(Oracle(), runtime=Runtime(server.address.url), runs=None)
    assert job.reward == 1.0


@on_loop
async def test_tasks_that_are_not_served_are_refused_with_those_that_are(tmp_path: Path) -> None:
    async with serving(letters()) as server:
        tasks = Taskset("some", [*some(), Task(env="letters", id="cuont")])
        with pytest.raises(UnknownName, match=r"no task in environment letters at .* 'cuont'; did you mean 'count'\?"):
            await tasks.run(Noop(), runtime=Runtime(server.address.url), runs=tmp_path)
    assert names(tmp_path) == []


@on_loop
async def test_the_version_of_what_is_served_belongs_to_the_job() -> None:
    async with serving(letters()) as server:
        job = await some().run(Noop(), runtime=Runtime(server.address.url), runs=None)
    assert job.config["environments"] == {"letters": "0.0.1"}


def one_seat() -> Environment:
    """An environment of one slot, which a started task holds."""

    class Seat(Bridge):
        async def start(self) -> None: ...

        async def stop(self) -> None: ...

        def capability(self, name: str) -> Capability:
            return Capability(name, "http/1.1", "http://127.0.0.1:9/")

        async def reset(self, **task_args: Any) -> Episode:
            del task_args
            return Episode(prompt="sit", token="t")

        async def result(self, token: str | None = None) -> Any:
            del token
            return {"score": 1.0}

    env = Environment("seats")
    seat = env.robot(Seat(), name="seat")

    @env.template()
    async def sit() -> AsyncGenerator[Any, Any]:
        yield (await seat.reset())["prompt"]
        yield await seat.result()

    return env


class Heard(logging.Handler):
    """What the evaluation has logged, and whether it has."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self.something = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.something.set()


@on_loop
async def test_runs_that_wait_for_what_others_hold_say_so_once(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(waiting_module, "_ASK_S", 0.05)
    monkeypatch.setattr(waiting_module, "_LOOK_S", 0.02)
    heard, log = Heard(), logging.getLogger("hudsim.eval")
    log.addHandler(heard)
    request.addfinalizer(lambda: log.removeHandler(heard))
    waiting: list[Run] = []
    async with serving(one_seat()) as server:
        async with await ControlClient.connect(server.address.url) as other:
            await other.start("sit")
            job = asyncio.create_task(
                Taskset("seats", [Task(env="seats", id="sit")]).run(
                    Noop(),
                    runtime=Runtime(server.address.url),
                    group=2,
                    runs=None,
                    on_event=lambda event, run: waiting.append(run),
                )
            )
            await heard.something.wait()
            words = {run.waits_for for run in waiting}
        done = await job
    assert words == {"seat, which has 1: other sessions hold all of them"}
    assert heard.messages == ["2 runs wait for a slot of seat, which has 1: other sessions hold all of them"]
    assert [run.verdict for run in done.runs] == [Verdict.passed] * 2
    assert [run.waits_for for run in done.runs] == [None, None]


@on_loop
async def test_a_start_that_waited_in_vain_says_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_module, "_ASK_S", 0.02)
    async with serving(one_seat()) as server, await ControlClient.connect(server.address.url) as other:
        await other.start("sit")
        run = Run(Task(env="seats", id="sit"), job_id="j", run_id="j-0")
        limits = replace(Limits(), start_s=1.0)
        await rollout(run, Noop(), Runtime(server.address.url), limits)
    assert run.verdict is Verdict.infra_error
    assert run.error == (
        "[starting the task] not started within 1 s: it waited for a slot of seat, which has 1: other sessions hold "
        "all of them"
    )
