"""The run store: what is kept, how it is found again, and who may write."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hudsim.errors import StoreError, UnknownName
from hudsim.eval.batch import Batch
from hudsim.eval.jobrow import JobRow
from hudsim.eval.run import Run
from hudsim.eval.store import Store
from hudsim.graders import Verdict
from tests.asyncrun import on_loop
from tests.eval.keeping import CONFIG, JOB, member, names, over, planned, task


@on_loop
async def test_a_run_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        runs = [member(0, 0.5, [(0.5, 1.0), (0.5, 0.0)]), member(1, Verdict.infra_error), member(2, Verdict.tampered)]
        for position, run in enumerate(runs):
            assert await store.finish(0, position, run) == []
    async with Store(tmp_path) as store:
        kept = await store.load(JOB.id)
        assert kept.job == JOB
        assert kept.batches == [Batch.of([task("a")], group=8, config=CONFIG)]
        assert [run.to_row() for run in kept.runs] == [run.to_row() for run in runs]
        for run in runs:
            assert (await store.trace(run.id)).to_json() == run.trace.to_json()
            found = await store.find_run(run.id)
            assert (found.to_row(), found.trace.to_json()) == (run.to_row(), run.trace.to_json())


@on_loop
async def test_a_run_that_counts_is_never_replaced(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        await store.finish(0, 0, member(0, 0.0))
        for came in (1.0, Verdict.infra_error):
            with pytest.raises(StoreError, match=r"0123abcd-0 has its verdict already: failed, reward 0.0; .* twice"):
                await store.finish(0, 0, member(0, came))
        assert [run.reward for run in (await store.load(JOB.id)).runs] == [0.0]


@on_loop
async def test_one_that_does_not_count_is_replaced_and_listed_in_the_attempts(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        await store.finish(0, 0, member(0, Verdict.infra_error))
        again = member(0, Verdict.cancelled)
        again.attempts = [{"verdict": "infra_error", "error": "within this try"}]
        await store.finish(0, 0, again)
        attempts = await store.finish(0, 0, member(0, 1.0))
        (run,) = (await store.load(JOB.id)).runs
        assert run.attempts == attempts
        assert [(one["verdict"], one["error"]) for one in attempts] == [
            ("infra_error", "infra_error it is"),
            ("infra_error", "within this try"),
            ("cancelled", "cancelled it is"),
        ]
        assert {"end", "seconds", "started_at"} <= set(attempts[0])


@on_loop
async def test_runs_come_in_order_however_they_finished(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        await asyncio.gather(*(store.finish(0, n, member(n)) for n in (5, 0, 7, 3, 1)))
        assert [run.index for run in (await store.load("last")).runs] == [0, 1, 3, 5, 7]


@on_loop
async def test_an_answer_that_is_no_json_is_kept_as_it_prints(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        answers: list[object] = [{1, 2}, float("nan"), "\ud800", {(1, 2): 3}]
        for n, answer in enumerate(answers):
            run = member(n)
            run.trace.content = answer
            await store.finish(0, n, run)
        assert (await store.trace(f"{JOB.id}-0")).content == "{1, 2}"
        assert (await store.trace(f"{JOB.id}-2")).content == "\ud800"
        assert (await store.trace(f"{JOB.id}-3")).content == "{(1, 2): 3}"


# Finding --------------------------------------------------------------------------------------------------------------


@on_loop
async def test_jobs_are_listed_newest_first_with_their_verdicts_and_mean_reward(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        cames: list[float | Verdict] = [1.0, 0.5, Verdict.infra_error, Verdict.tampered]
        for n, came in enumerate(cames):
            await store.finish(0, n, member(n, came))
        await store.create(JobRow("ffff0000", "empty", 4, "2026-02-01T00:00:00+00:00"))
        newest, first = await store.jobs()
        assert (newest.job.name, newest.expected, newest.ran, newest.reward) == ("empty", 0, 0, None)
        assert (newest.config, newest.verdicts) == ({}, {})
        assert (first.job, first.config, first.expected, first.ran, first.reward) == (JOB, CONFIG, 8, 3, 0.5)
        assert first.verdicts == {"passed": 1, "partial": 1, "infra_error": 1, "tampered": 1, "missing": 4}


@on_loop
async def test_a_job_is_found_by_the_beginning_of_its_id_and_the_newest_as_last(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store, expected=12)
        for n in range(11):
            await store.finish(0, n, member(n))
        await store.create(JobRow("0129ffff", "other", 1, "2025-01-01T00:00:00+00:00"))
        assert (await store.load("0123")).job.id == JOB.id
        assert (await store.load("last")).job.id == "0129ffff"
        assert (await store.find_run("0123-1")).id == f"{JOB.id}-1"
        assert (await store.find_run(f"{JOB.id}-10")).id == f"{JOB.id}-10"
        await store.create(JobRow(JOB.id[::-1], "newest", 1, "2025-01-01T00:00:00+00:00"))
        await store.add(JOB.id[::-1], 0, Batch.of([task("a")], group=2, config={}))
        run = over(Run(task("a"), job_id=JOB.id[::-1], run_id=f"{JOB.id[::-1]}-1", index=1))
        await store.finish(0, 1, run)
        assert (await store.find_run("last-1")).id == run.id


@on_loop
async def test_a_name_that_is_not_there_or_is_several_lists_what_comes_near(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        await store.finish(0, 0, member(0))
        for n in range(20):
            await store.create(JobRow(f"0129{n:04}", "other", 1, "2025-01-01T00:00:00+00:00"))
        with pytest.raises(UnknownName, match=r"no job, but several that begin with '012'.*0129.*… 13 more"):
            await store.load("012")
        with pytest.raises(UnknownName, match=r"no job '0123abce'; did you mean '0123abcd'\?"):
            await store.load("0123abce")
        with pytest.raises(UnknownName, match=r"no job ''\. There are: 0129"):
            await store.load("")
        for name in ("0123-7", JOB.id, f"{JOB.id}-", f"{JOB.id}-0x", "0123-00"):
            with pytest.raises(UnknownName, match=f"no run '{name}'.* There are: 0123abcd-0"):
                await store.find_run(name)


@on_loop
async def test_reading_makes_neither_folder_nor_file(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    async with Store(folder) as store:
        for ask in (store.jobs(), store.load("last"), store.find_run("last-0")):
            with pytest.raises(StoreError, match=f"nothing was kept in {folder} yet"):
                await ask
    assert not folder.exists()
    folder.mkdir()
    (folder / "hudsim.db").touch()
    async with Store(folder) as store:
        with pytest.raises(StoreError, match="nothing was kept"):
            await store.jobs()


@on_loop
async def test_closing_twice_is_fine_and_leaves_the_database_alone_in_its_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    await planned(store)
    await store.hold(JOB.id)
    await store.jobs()
    await store.close()
    await store.close()
    assert names(tmp_path) == ["hudsim.db"]


# Many at once ---------------------------------------------------------------------------------------------------------


@on_loop
async def test_a_second_holder_of_a_job_is_refused_with_the_first_one_s_process(tmp_path: Path) -> None:
    async with Store(tmp_path) as first, Store(tmp_path) as second:
        await first.hold(JOB.id)
        await second.hold("another0")
        with pytest.raises(StoreError, match=f"job {JOB.id} is being worked on by process {os.getpid()}"):
            await second.hold(JOB.id)
        await first.release(JOB.id)
        await first.release(JOB.id)
        await second.hold(JOB.id)
        assert (tmp_path / f"{JOB.id}.lock").exists()
    assert names(tmp_path) == []


@on_loop
async def test_stores_of_one_process_share_a_database(tmp_path: Path) -> None:
    stores = [Store(tmp_path) for _ in range(4)]
    await planned(stores[0], expected=40)
    await asyncio.gather(*(stores[n % 4].finish(0, n, member(n)) for n in range(40)))
    assert len((await stores[3].load("last")).runs) == 40
    for store in stores:
        await store.close()


MANY = """
import asyncio, sys
from pathlib import Path
from hudsim.eval.job import Job
from tests.eval.keeping import over, task

async def main():
    sys.stdin.readline()
    job = await Job.start("many", runs=Path(sys.argv[1]))
    for run in await job.plan([task("a")], group=30, config={}):
        await job.finish(over(run))
    await job.close()

print("ready", flush=True)
asyncio.run(main())
"""


def test_processes_that_begin_a_database_at_the_same_moment_lose_nothing(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "runs")]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=repository, text=True) for _ in range(6)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=50)
    assert [child.returncode for child in children] == [0] * 6

    async def listed() -> list[tuple[int, int]]:
        async with Store(tmp_path / "runs") as store:
            return [(job.ran, job.expected) for job in await store.jobs()]

    assert asyncio.run(listed()) == [(30, 30)] * 6
    assert names(tmp_path / "runs") == ["hudsim.db"]


@on_loop
async def test_a_reader_in_the_middle_of_its_reading_does_not_hold_up_the_writer(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        reader = sqlite3.connect(tmp_path / "hudsim.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM runs").fetchall()
        async with asyncio.timeout(5):
            await store.finish(0, 0, member(0))
        assert reader.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        reader.close()


@on_loop
async def test_a_writer_waits_for_another_writer_s_end(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        other = sqlite3.connect(tmp_path / "hudsim.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.finish(0, 0, member(0)))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        assert len(await store.jobs()) == 1  # a listing does not wait
        other.execute("ROLLBACK")
        other.close()
        await waiting
        assert len((await store.load("last")).runs) == 1
