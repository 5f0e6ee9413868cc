"""A database that another process has locked: waited for with a warning, and not once somebody interrupts."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hudsim.eval import patience
from hudsim.eval.job import Job
from hudsim.eval.store import Store
from tests.asyncrun import on_loop
from tests.eval.keeping import CONFIG, JOB, over, task


@contextmanager
def locked(folder: Path) -> Iterator[threading.Event]:
    """The database is locked by somebody else, until the event is set or the block ends."""
    free, is_held = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(folder / "hudsim.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            is_held.set()
            free.wait(60)
            other.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(20)
    try:
        yield free
    finally:
        free.set()
        thread.join()


@on_loop
async def test_a_run_waits_for_a_locked_database_with_a_warning_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(patience, "BUSY_S", 0.3)
    async with await Job.start("letters", runs=tmp_path) as job:
        (run,) = await job.plan([task("a")], 1, CONFIG)
        with locked(tmp_path) as free:
            keeping = asyncio.create_task(job.finish(over(run)))
            while "has been locked by another process" not in caplog.text:
                assert not keeping.done()
                await asyncio.sleep(0.02)
            free.set()
            await keeping
        assert job.complete
    assert (await Job.load(job.id, runs=tmp_path)).complete


@pytest.mark.slow
@on_loop
async def test_a_lock_of_more_than_ten_seconds_costs_nothing(tmp_path: Path) -> None:
    async with await Job.start("letters", runs=tmp_path) as job:
        (run,) = await job.plan([task("a")], 1, CONFIG)
        with locked(tmp_path) as free:
            asyncio.get_running_loop().call_later(12.0, free.set)
            await job.finish(over(run))
        assert job.complete


@on_loop
async def test_an_interrupt_does_not_wait_for_a_locked_database_and_says_what_was_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = await Job.start("letters", runs=tmp_path)
    runs = await job.plan([task("a")], 4, CONFIG)
    with locked(tmp_path):
        keeping = [asyncio.create_task(job.finish(over(run))) for run in runs]
        await asyncio.sleep(0.2)
        for one in keeping:
            one.cancel()
        ended = await asyncio.gather(*keeping, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in ended)
        await job.close()
    assert f"run {runs[0].id} was not kept" in caplog.text
    async with Store(tmp_path) as store:
        assert (await store.load(job.id)).runs == []
    async with await Job.resume(job.id, runs=tmp_path) as resumed:
        assert len(await resumed.plan([task("a")], 4, CONFIG)) == 4


@on_loop
async def test_a_run_that_is_only_held_up_for_a_moment_is_kept_although_somebody_interrupts(tmp_path: Path) -> None:
    job = await Job.start("letters", runs=tmp_path)
    (run,) = await job.plan([task("a")], 1, CONFIG)
    with locked(tmp_path) as free:
        keeping = asyncio.create_task(job.finish(over(run)))
        await asyncio.sleep(0.2)
        keeping.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await keeping
        await job.close()
    assert (await Job.load(job.id, runs=tmp_path)).complete


@on_loop
async def test_a_job_that_cannot_begin_can_be_interrupted(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await store.create(JOB)
    with locked(tmp_path):
        beginning = asyncio.create_task(Job.start("other", runs=tmp_path))
        await asyncio.sleep(0.2)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
