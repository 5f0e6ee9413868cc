"""Runs that are over, without anything having run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hudsim.environment.task import Task
from hudsim.eval.batch import Batch
from hudsim.eval.job import Job
from hudsim.eval.jobrow import JobRow
from hudsim.eval.run import Run
from hudsim.eval.store import Store
from hudsim.eval.trace import Step
from hudsim.graders import EvaluationResult, SubScore, Verdict

__all__ = ["CONFIG", "JOB", "finish", "member", "names", "over", "planned", "task"]

CONFIG: dict[str, Any] = {"agent": "oracle", "timeout": None, "settings": {"cameras": False}}
JOB = JobRow("0123abcd", "letters", 1, "2026-01-01T00:00:00+00:00")


def task(slug: str, **args: Any) -> Task:
    return Task(env="letters", id="count", args=args, slug=slug)


def over(run: Run, came: float | Verdict = 1.0, parts: Sequence[tuple[float, float]] = ()) -> Run:
    """``run`` with a reward or a verdict; ``parts``: weight and value of each subscore."""
    run.end, run.seconds, run.started_at, run.prompt = "done", 0.25, "2026-01-01T00:00:01+00:00", "How many?"
    run.trace.content = "3"
    run.record(Step("agent", content="counting", data={"run": run.id}))
    if isinstance(came, Verdict):
        run.verdict = came
        run.error = f"{came} it is"
        return run
    subscores = [SubScore(name=f"p{n}", weight=weight, value=value) for n, (weight, value) in enumerate(parts)]
    run.grade = EvaluationResult(reward=came, subscores=subscores or None)
    run.verdict = run.grade.outcome
    return run


def member(index: int, came: float | Verdict = 1.0, parts: Sequence[tuple[float, float]] = (), slug: str = "a") -> Run:
    """A run of job :data:`JOB` that is over."""
    return over(Run(task(slug), job_id=JOB.id, run_id=f"{JOB.id}-{index}", index=index), came, parts)


async def planned(store: Store, expected: int = 8) -> None:
    """Make :data:`JOB`, and a batch of it with one task, ``a``."""
    await store.create(JOB)
    await store.add(JOB.id, 0, Batch.of([task("a")], group=expected, config=CONFIG))


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


async def finish(job: Job, runs: Sequence[Run], came: float | Verdict = 1.0) -> None:
    """Each of ``runs`` is over and kept, one after another."""
    for run in runs:
        await job.finish(over(run, came))
