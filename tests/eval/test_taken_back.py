"""Runs that an operator takes back: they count no more, what they were is kept, and a resume makes them again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hudsim.environment import Environment
from hudsim.errors import StoreError, UsageError
from hudsim.eval import Job, Run, Store, Taskset, Verdict
from tests.asyncrun import on_loop

env = Environment("guesses")


@env.template()
async def guess() -> AsyncGenerator[Any, Any]:
    answer = yield "?"
    yield float(answer == "right")


tasks = Taskset("guesses", [guess()])


def answering(word: str) -> Any:
    async def agent(run: Run) -> None:
        run.trace.content = word
        run.note("agent", content=word)

    return agent


async def resumed(job: Job, word: str, runs: Path) -> Job:
    async with await Job.resume(job.id, runs=runs) as again:
        return await tasks.run(answering(word), group=3, job=again)


@on_loop
async def test_what_was_taken_back_is_made_again_and_stands_in_the_record(tmp_path: Path) -> None:
    job = await tasks.run(answering("wrong"), group=3, runs=tmp_path)
    first = job.runs[1].started_at
    async with await Job.resume(job.id, runs=tmp_path) as held:
        (taken,) = await held.invalidate([held.runs[1]], because="the server was down")
        assert (taken.verdict, taken.reward, taken.error) == (
            Verdict.cancelled,
            None,
            "taken back: the server was down",
        )
        assert (held.ran, held.complete, held.errors) == (2, False, [taken])
    async with Store(tmp_path) as store:
        assert [summary.verdicts for summary in await store.jobs()] == [{"failed": 2, "cancelled": 1}]
        assert [step.content for step in (await store.trace(taken.id)).steps if step.source == "agent"] == ["wrong"]

    again = await resumed(job, "right", tmp_path)
    assert [run.reward for run in again.runs] == [0.0, 1.0, 0.0]
    (attempt,) = (await Job.load(job.id, runs=tmp_path)).runs[1].attempts
    assert attempt == {
        "verdict": "failed",
        "reward": 0.0,
        "error": None,
        "end": "done",
        "seconds": attempt["seconds"],
        "started_at": first,
        "because": "the server was down",
    }


@on_loop
async def test_all_are_taken_back_or_none(tmp_path: Path) -> None:
    job = await tasks.run(answering("wrong"), group=3, runs=tmp_path)
    async with await Job.resume(job.id, runs=tmp_path) as held:
        await held.invalidate([held.runs[2]], because="a")
        with pytest.raises(UsageError, match=rf"run {job.id}-2 does not count anyway: cancelled"):
            await held.invalidate(held.runs, because="b")
        assert held.ran == 2
    assert (await Job.load(job.id, runs=tmp_path)).ran == 2


@on_loop
async def test_a_job_in_memory_takes_back_as_well() -> None:
    async with await Job.start("here", group=2, runs=None) as job:
        await tasks.run(answering("wrong"), job=job)
        await job.invalidate([job.runs[0]], because="a")
        assert dict(job.verdicts) == {"cancelled": 1, "failed": 1}
        assert [step.source for step in job.runs[0].trace.steps][-2:] == ["agent", "task"]


@on_loop
async def test_only_whoever_holds_the_job_takes_back_and_says_why(tmp_path: Path) -> None:
    job = await tasks.run(answering("wrong"), group=3, runs=tmp_path)
    with pytest.raises(UsageError, match="is closed"):
        await job.invalidate(job.runs, because="a")
    async with await Job.resume(job.id, runs=tmp_path) as held:
        with pytest.raises(StoreError, match="is being worked on by process"):
            await Job.resume(job.id, runs=tmp_path)
        with pytest.raises(UsageError, match="because: got '', expected why"):
            await held.invalidate(held.runs, because="")


@on_loop
async def test_the_trace_of_a_kept_run_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    job = await tasks.run(answering("wrong"), group=3, runs=tmp_path)
    kept = await Job.load(job.id, runs=tmp_path)
    assert [run.trace.to_json() for run in kept.runs] == [run.trace.to_json() for run in job.runs]
    assert kept.runs[0].trace is kept.runs[0].trace

    other = await Job.load(job.id, runs=tmp_path)
    async with await Job.resume(job.id, runs=tmp_path) as held:
        await held.invalidate([held.runs[0]], because="a")
    await resumed(job, "right", tmp_path)
    with pytest.raises(StoreError, match=rf"run {job.id}-0 was made again at .*; the trace of that at .* is gone"):
        _ = other.runs[0].trace
    (tmp_path / "hudsim.db").unlink()
    with pytest.raises(StoreError, match="nothing was kept"):
        _ = other.runs[1].trace
