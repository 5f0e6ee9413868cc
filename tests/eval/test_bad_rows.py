"""What is in the database and cannot be read costs itself alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import StoreError
from hudsim.eval import Job, Store
from tests.asyncrun import on_loop
from tests.eval.keeping import CONFIG, JOB, finish, member, planned, task


async def kept(folder: Path) -> None:
    """Three runs of :data:`JOB`."""
    async with Store(folder) as store:
        await planned(store, expected=3)
        for n in range(3):
            await store.finish(0, n, member(n))


def spoil(folder: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / "hudsim.db", isolation_level=None)) as database:
        assert database.execute(statement, values).rowcount == 1


BAD: list[Any] = [
    "no JSON",
    "5",
    "{}",
    "[" * 5000,
    {"verdict": "odd"},
    {"verdict": None},
    {"index": "a"},
    {"index": -1},
    {"seconds": "long"},
    {"seconds": float("nan")},
    {"started_at": "yesterday"},
    {"attempts": 5},
    {"attempts": [5]},
    {"task": {"env": 5}},
    {"grade": {"score": 1e308}},
    {"grade": {"score": "x"}},
    {"end": "odd"},
    {"id": "0123abcd-2"},
    {"error": 5},
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(bad)[:30])
@on_loop
async def test_a_run_that_cannot_be_read_is_missing_and_made_again(
    bad: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await kept(tmp_path)
    words = bad if isinstance(bad, str) else json.dumps(member(1).to_row() | bad)
    spoil(tmp_path, "UPDATE runs SET row = ? WHERE id = ?", words, f"{JOB.id}-1")
    job = await Job.load(JOB.id, runs=tmp_path)
    assert [run.id for run in job.runs] == [f"{JOB.id}-0", f"{JOB.id}-2"]
    assert job.verdicts["missing"] == 1
    job.to_json()
    assert f"run {JOB.id}-1 was kept, and cannot be read" in caplog.text
    async with Store(tmp_path) as store:
        with pytest.raises(StoreError, match=f"run {JOB.id}-1 was kept, and cannot be read: "):
            await store.find_run(f"{JOB.id}-1")
        assert (await store.find_run(f"{JOB.id}-2")).reward == 1.0
    async with await Job.resume(JOB.id, runs=tmp_path) as resumed:
        (run,) = await resumed.plan([task("a")], 3, CONFIG)
        await finish(resumed, [run])
        assert resumed.complete
    again = (await Job.load(JOB.id, runs=tmp_path)).runs[1]
    assert "cannot be read" in again.attempts[0]["error"]


@pytest.mark.parametrize(
    "bad", ["no JSON", "5", '{"steps": 5}', '{"steps": [{}]}', '{"steps": [{"source": "a", "tokens": 5}]}']
)
@on_loop
async def test_a_trace_that_cannot_be_read_leaves_the_job_readable(bad: str, tmp_path: Path) -> None:
    await kept(tmp_path)
    spoil(tmp_path, "UPDATE traces SET trace = ? WHERE run = ?", bad, f"{JOB.id}-1")
    async with Store(tmp_path) as store:
        assert len((await store.load(JOB.id)).runs) == 3
        with pytest.raises(StoreError, match=f"run {JOB.id}-1 was kept, and cannot be read: "):
            await store.trace(f"{JOB.id}-1")


@pytest.mark.parametrize("column", ["config", "tasks"])
@pytest.mark.parametrize("bad", ["no JSON", "5", "[5]", "[" * 5000])
@on_loop
async def test_a_plan_that_cannot_be_read_is_said_and_the_listing_goes_on(
    column: str, bad: str, tmp_path: Path
) -> None:
    await kept(tmp_path)
    spoil(tmp_path, f"UPDATE batches SET {column} = ? WHERE job = ?", bad, JOB.id)
    async with Store(tmp_path) as store:
        with pytest.raises(StoreError, match=f"batch 0 of job {JOB.id} was kept, and cannot be read: "):
            await store.load(JOB.id)
        (summary,) = await store.jobs()
        assert summary.ran == 3
