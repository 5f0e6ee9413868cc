"""What an agent does to its run does not reach the record, and what it brings about counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from hudsim.environment import Environment
from hudsim.errors import LinkLost, TaskError
from hudsim.eval import Job, Run, Step, Taskset, Trace, Verdict
from hudsim.graders import EvaluationResult
from hudsim.robot.client import RobotClient
from tests.asyncrun import on_loop
from tests.robot.worlds import inline


def letters(words: int = 3) -> Taskset:
    env = Environment("letters")

    @env.template()
    async def count(word: str) -> AsyncGenerator[Any, Any]:
        answer = yield f"r in {word}?"
        yield float(answer == "right")

    return Taskset("letters", [count(word="r" * n) for n in range(words)])


async def played(cheat: Callable[[Run], object], tmp_path: Path, *, group: int = 2) -> Job:
    """One run of the first task cheats, all others answer wrongly; as it was kept."""
    cheated = False

    async def agent(run: Run) -> None:
        nonlocal cheated
        if not cheated:
            cheated = True
            outcome = cheat(run)
            if asyncio.iscoroutine(outcome):
                await outcome

    job = await letters().run(agent, group=group, max_concurrent=1, runs=tmp_path)
    kept = await Job.load(job.id, runs=tmp_path)
    assert [run.to_row() for run in kept.runs] == [run.to_row() for run in job.runs]
    return kept


class Surprise(BaseException):
    """As pytest's outcomes are: no Exception."""


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raises(error: BaseException) -> Callable[[Run], object]:
    async def cheat(run: Run) -> None:
        raise error

    return cheat


def sets(**values: Any) -> Callable[[Run], object]:
    def cheat(run: Run) -> None:
        for name, value in values.items():
            setattr(run, name, value)

    return cheat


async def cancels_itself(run: Run) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def spoils_steps(run: Run) -> None:
    run.trace.steps.append(object())  # type: ignore[arg-type]
    run.record(Step("agent", data={"a": 1})).data["b"] = object()


def changes_the_task(run: Run) -> None:
    run.task.args.update(word="other")
    run.task.slug = "other"


def nests(run: Run) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    run.trace.content = deep


CHEATS = {
    "a passed verdict": sets(verdict=Verdict.passed, grade=EvaluationResult(reward=1.0)),
    "an invalid verdict": sets(verdict=Verdict.infra_error),
    "another run's id": sets(id="another-1", index=5, job_id="j"),
    "no trace": sets(trace=None),
    "no list of steps": lambda run: setattr(run.trace, "steps", None),
    "no task": sets(task=None),
    "no end": sets(end="lost"),
    "what is no error": sets(error=object(), prompt=object(), attempts=None),
    "another task": changes_the_task,
    "steps that are none": spoils_steps,
    "a deep answer": nests,
    "a surprise": raises(Surprise("boo")),
    "a mute error": raises(Mute()),
    "an odd typed error": raises(TaskError("x", traceback=object())),
    "a lost link": raises(LinkLost("the dog ate it")),
    "a generator's exit": raises(GeneratorExit()),
    "a surrogate": raises(ValueError("\ud800")),
    "a cancellation of its own": cancels_itself,
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
@on_loop
async def test_a_cheat_is_a_loss_and_touches_no_other_run(cheat: Callable[[Run], object], tmp_path: Path) -> None:
    job = await played(cheat, tmp_path)
    assert [(run.verdict, run.reward) for run in job.runs] == [(Verdict.failed, 0.0)] * 6, job.runs[0].error
    assert [run.id for run in job.runs] == [f"{job.id}-{n}" for n in range(6)]
    assert [run.task.args["word"] for run in job.runs] == ["", "", "r", "r", "rr", "rr"]


@on_loop
async def test_what_a_left_behind_task_does_later_changes_nothing(tmp_path: Path) -> None:
    later: list[asyncio.Task[None]] = []

    def cheat(run: Run) -> None:
        async def afterwards() -> None:
            while True:
                run.verdict, run.grade, run.trace.content = Verdict.passed, EvaluationResult(reward=1.0), "right"
                await asyncio.sleep(0)

        later.append(asyncio.get_running_loop().create_task(afterwards()))

    job = await played(cheat, tmp_path)
    later[0].cancel()
    assert job.reward == 0.0


@on_loop
async def test_an_answer_that_comes_after_its_time_is_none() -> None:
    async def late(run: Run) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            run.trace.content = "right"

    job = await letters(1).run(late, timeout=0.05, runs=None)
    assert (job.runs[0].end, job.runs[0].reward) == ("timeout", 0.0)


@on_loop
async def test_an_agent_has_no_control_of_its_session_and_nothing_once_it_is_over() -> None:
    seen: list[Run] = []

    async def agent(run: Run) -> None:
        seen.append(run)
        assert not hasattr(run, "client")

    await letters(1).run(agent, runs=None)
    with pytest.raises(TaskError, match="not live any more"):
        await seen[0].reference()


@pytest.mark.parametrize("feigns", [True, False])
@on_loop
async def test_a_robots_agent_that_hangs_up_in_the_middle_has_lost(feigns: bool) -> None:
    env = Environment("cards")
    card = env.robot(inline(max_ticks=5), name="card")

    @env.template()
    async def read() -> AsyncGenerator[Any, Any]:
        await card.reset(seed=1)
        yield "read"
        record = await card.result()
        yield record if record["is_error"] else 1.0

    async def agent(run: Run) -> None:
        token = run.bindings["card"]["token"]
        robot = await RobotClient.connect(await run.reach("card"), token=token)
        await robot.get_observation()
        robot._link.abort()
        await asyncio.sleep(0.2)
        if feigns:
            raise LinkLost("it was the link")

    job = await Taskset("cards", [read()]).run(agent, runs=None)
    assert (job.runs[0].verdict, job.runs[0].reward) == (Verdict.failed, 0.0)


@on_loop
async def test_numbers_of_numpy_are_answers() -> None:
    import numpy as np

    async def agent(run: Run) -> None:
        run.trace.content = {"n": np.int64(3), "x": np.float32(0.5)}

    job = await letters(1).run(agent, runs=None)
    assert job.runs[0].trace.content == {"n": 3, "x": 0.5}
    assert isinstance(job.runs[0].trace, Trace)
