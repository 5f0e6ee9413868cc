"""SIGKILL at any moment: what was said to be kept is kept, once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from hudsim.eval.job import Job
from hudsim.eval.store import Store
from tests.asyncrun import on_loop
from tests.eval.keeping import CONFIG, names, over, task
from tests.eval.kills import RUNS, TIMES


def killed(folder: Path, repository: Path) -> list[list[str]]:
    """What was said to be kept in ``folder`` before each kill."""
    command = [sys.executable, "-m", "tests.eval.kills", str(folder)]
    done = subprocess.run(command, check=True, cwd=repository, capture_output=True, text=True, timeout=50)
    said: list[list[str]] = json.loads(done.stdout)
    return said


def test_a_job_killed_twenty_times_has_each_run_once_and_goes_on_after_each(tmp_path: Path, repository: Path) -> None:
    said = killed(tmp_path, repository)
    assert len(said) == TIMES
    assert all(said)
    told = [run for ids in said for run in ids]
    assert len(set(told)) == len(told)
    look_and_go_on(tmp_path, told)


@on_loop
async def look_and_go_on(tmp_path: Path, told: list[str]) -> None:
    async with Store(tmp_path) as store:
        (summary,) = await store.jobs()
        kept = await store.load("last")
        ids = [run.id for run in kept.runs]
        assert ids == [f"{kept.job.id}-{n}" for n in range(len(ids))]
        assert set(told) <= set(ids)
        assert len(ids) - len(told) <= TIMES  # one may be kept, and its maker killed before it could say so
        assert (summary.ran, summary.expected) == (len(ids), 2 * RUNS)
        for run in kept.runs[:: max(1, len(ids) // 20)]:
            (step,) = (await store.trace(run.id)).steps
            assert step.data == {"run": run.id}

    assert f"{kept.job.id}.lock" in names(tmp_path)  # the last one killed held it; the kernel let go
    async with await Job.resume("last", runs=tmp_path) as job:
        missing = await job.plan([task("a"), task("b")], RUNS, CONFIG)
        assert len(missing) == 2 * RUNS - len(ids)
        await asyncio.gather(*(job.finish(over(run, 0.5)) for run in missing))
        assert job.complete
        whole = [run.to_row() for run in job.runs]
    assert [run.to_row() for run in (await Job.load("last", runs=tmp_path)).runs] == whole
    assert whole[: len(ids)] == [run.to_row() for run in kept.runs]
    assert len(whole) == 2 * RUNS
    assert names(tmp_path) == ["hudsim.db"]
