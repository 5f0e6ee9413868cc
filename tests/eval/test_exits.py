"""What would end a program, raised by an agent or a template, ends that run alone."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from hudsim.environment import Environment
from hudsim.eval import Job, Run, Taskset, Verdict
from hudsim.eval.work import is_interrupt
from tests.asyncrun import on_loop


def _interrupt() -> None:
    raise KeyboardInterrupt


RAISED: dict[str, Callable[[], Any]] = {"KeyboardInterrupt": _interrupt, "SystemExit": lambda: sys.exit(3)}
raised = pytest.mark.parametrize("name", RAISED)


def world(at: str, name: str) -> Taskset:
    """Two tasks, the first of which raises ``at`` its start or its grade."""
    env = Environment("exits")

    @env.template()
    async def work(first: bool) -> AsyncGenerator[Any, Any]:
        if at == "start" and first:
            RAISED[name]()
        yield "?"
        if at == "grade" and first:
            RAISED[name]()
        yield 1.0

    return Taskset("exits", [work(first=True), work(first=False)])


@raised
@on_loop
async def test_an_agent_s_exit_ends_its_own_run(name: str) -> None:
    async def agent(run: Run) -> None:
        if run.task.args["first"]:
            RAISED[name]()

    job = await world("", name).run(agent, runs=None)
    assert [(run.end, run.reward) for run in job.runs] == [("error", 1.0), ("done", 1.0)]
    assert str(job.runs[0].error).startswith(f"the agent raised {name}: ")


@raised
@on_loop
async def test_an_exit_in_an_agent_s_thread_ends_its_own_run(name: str) -> None:
    async def agent(run: Run) -> None:
        if run.task.args["first"]:
            await asyncio.to_thread(RAISED[name])

    job = await world("", name).run(agent, runs=None)
    assert [run.end for run in job.runs] == ["error", "done"]


@raised
@pytest.mark.parametrize(("at", "verdict"), [("start", Verdict.infra_error), ("grade", Verdict.grader_error)])
@on_loop
async def test_a_template_s_exit_ends_its_own_run(at: str, verdict: Verdict, name: str) -> None:
    async def agent(run: Run) -> None:
        del run

    job: Job = await world(at, name).run(agent, runs=None)
    assert [run.verdict for run in job.runs] == [verdict, Verdict.passed]
    assert f"raised {name}" in str(job.runs[0].error)


@on_loop
async def test_what_may_be_somebody_s_interrupt_is_told_apart() -> None:
    assert not is_interrupt(SystemExit())
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        assert not is_interrupt(KeyboardInterrupt())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert is_interrupt(KeyboardInterrupt())
    finally:
        signal.signal(signal.SIGINT, before)
