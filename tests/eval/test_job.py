"""Jobs: what they come to, the order of their runs, and going on where one was broken off."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudsim.environment.task import Task
from hudsim.errors import StoreError, UnknownName, UsageError
from hudsim.eval.job import Job
from hudsim.eval.run import Run
from hudsim.eval.store import Store
from hudsim.graders import EvaluationResult, Verdict
from tests.asyncrun import on_loop, within
from tests.eval.keeping import CONFIG, finish, member, names, over, task

TASKS = [task("a", seed=0), task("b", seed=1), task("c", seed=2)]


async def begun(group: int = 2, runs: Path | None = None, tasks: list[Task] = TASKS) -> tuple[Job, list[Run]]:
    job = await Job.start("letters", group=group, runs=runs)
    return job, await job.plan(tasks, group, CONFIG)


def order(runs: list[Run]) -> list[tuple[str, int]]:
    return [(run.slug, run.index) for run in runs]


# What it comes to -----------------------------------------------------------------------------------------------------


@on_loop
async def test_a_plan_is_task_by_task_with_ids_that_count_through_the_job() -> None:
    job, runs = await begun()
    assert order(runs) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1)]
    assert [run.id for run in runs] == [f"{job.id}-{n}" for n in range(6)]
    assert runs[0].task is TASKS[0]
    (again,) = await job.plan([task("z")], 1, CONFIG)
    assert again.id == f"{job.id}-6"
    assert len(job.id) == 8
    assert job.expected == 7


@on_loop
async def test_means_and_counts_tell_what_is_valid_invalid_and_missing_apart() -> None:
    job, runs = await begun()
    cames: list[float | Verdict] = [1.0, 0.5, Verdict.infra_error, Verdict.tampered, Verdict.cancelled]
    for run, came in zip(runs, cames, strict=False):
        await job.finish(over(run, came))
    assert job.reward == 0.5
    assert job.mean_over_all == 0.25
    assert job.verdicts == {
        "passed": 1,
        "partial": 1,
        "tampered": 1,
        "infra_error": 1,
        "cancelled": 1,
        "missing": 1,
    }
    assert job.errors == [runs[2], runs[4]]
    assert (job.ran, job.expected, job.complete) == (3, 6, False)
    assert {slug: len(found) for slug, found in job.results.items()} == {"a": 2, "b": 2, "c": 1}
    spread = job.spread()
    assert {slug: one.state for slug, one in spread.items()} == {"a": "spread", "b": "partial", "c": "errored"}
    assert "(1 cancelled, 1 missing)" in spread["c"].words


@on_loop
async def test_a_job_without_a_valid_run_has_no_reward_rather_than_a_0() -> None:
    job = await Job.start("empty", runs=None)
    assert (job.reward, job.mean_over_all, job.verdicts, job.runs, job.spread()) == (None, None, {}, [], {})
    await finish(job, await job.plan([task("a")], 1, {}), Verdict.infra_error)
    assert (job.reward, job.mean_over_all, job.complete) == (None, 0.0, False)


@on_loop
async def test_pass_at_k_names_tasks_of_which_too_little_ran() -> None:
    job, runs = await begun()
    await finish(job, runs[:3])
    found = job.pass_at(2)
    assert (found.value, found.left_out) == (1.0, {"b": 1, "c": 0})


@on_loop
async def test_the_document_has_just_these_keys() -> None:
    job, runs = await begun()
    await job.finish(over(runs[0], 0.5, [(1.0, 0.5)]))
    await job.finish(over(runs[1], Verdict.infra_error))
    document = json.loads(json.dumps(job.to_json()))
    assert list(document) == ["job", "reward", "mean_over_all", "verdicts", "spread", "runs"]
    assert list(document["spread"]) == ["a", "b", "c"]
    assert document["spread"]["a"]["state"] == "partial"
    first, second = document["runs"]
    assert list(first) == ["run", "task", "group", "index", "verdict", "reward", "end", "seconds", "subscores"]
    assert (first["run"], first["task"], first["group"]) == (f"{job.id}-0", "a", f"{job.id}/a")
    assert first["subscores"][0]["value"] == 0.5
    assert (second["reward"], second["subscores"], second["error"]) == (None, None, "infra_error it is")


@on_loop
async def test_a_slug_of_a_later_batch_is_a_group_of_its_own() -> None:
    job, runs = await begun(tasks=[task("a"), task("b")])
    await finish(job, runs, 0.0)
    await finish(job, await job.plan([task("b"), task("c")], 3, CONFIG))
    assert {name: (one.state, len(one.rewards)) for name, one in job.spread().items()} == {
        "a": ("all_zero", 2),
        "b": ("all_zero", 2),
        "b#1": ("all_one", 3),
        "c": ("all_one", 3),
    }
    groups = [run["group"] for run in job.to_json()["runs"]]
    assert groups == [f"{job.id}/{name}" for name in ["a", "a", "b", "b", "b#1", "b#1", "b#1", "c", "c", "c"]]
    assert len(job.results["b"]) == 5


@on_loop
async def test_what_cannot_be_planned_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    async with await Job.start("letters", runs=tmp_path) as job:
        for group in (0, True, 1.0):
            with pytest.raises(UsageError, match="group: got"):
                await job.plan(TASKS, group, CONFIG)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="2 tasks have the slug 'a'"):
            await job.plan([task("a"), task("b"), task("a", seed=2)], 1, CONFIG)
        with pytest.raises(UsageError, match="configuration is no plain JSON"):
            await job.plan(TASKS, 1, {"agent": object()})
        odd = task("a")
        odd.args["what"] = object()
        with pytest.raises(UsageError, match="task a is no plain JSON"):
            await job.plan([odd], 1, CONFIG)
        assert job.expected == 0
        assert len(await job.plan(TASKS, 1, CONFIG)) == 3


@on_loop
async def test_a_run_that_is_not_over_not_this_job_s_or_without_a_number_is_refused() -> None:
    job, runs = await begun()
    with pytest.raises(UsageError, match="got verdict None"):
        await job.finish(runs[0])
    with pytest.raises(UsageError, match="was not planned by job"):
        await job.finish(member(0))
    for number in (6, -1):
        stray = over(Run(TASKS[0], job_id=job.id, run_id=f"{job.id}-{number}"))
        with pytest.raises(UsageError, match="was not planned by job"):
            await job.finish(stray)
    broken = over(runs[1])
    broken.grade = EvaluationResult.model_construct(reward=float("nan"))
    with pytest.raises(UsageError, match="reward nan"):
        await job.finish(broken)
    assert job.runs == []


@pytest.mark.parametrize("kept", [False, True])
@on_loop
async def test_a_run_that_counts_is_never_taken_twice_and_another_gives_way(kept: bool, tmp_path: Path) -> None:
    job, runs = await begun(runs=tmp_path if kept else None)
    again = Run(TASKS[0], job_id=job.id, run_id=runs[0].id)
    await finish(job, runs[:1], Verdict.infra_error)
    await job.finish(over(again, 0.0))
    assert [one["verdict"] for one in again.attempts] == ["infra_error"]
    with pytest.raises(StoreError, match="has its verdict already"):
        await job.finish(over(runs[0], 1.0))
    assert [run.reward for run in job.runs] == [0.0]
    await job.close()


# In any order, and again ----------------------------------------------------------------------------------------------

places = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(
        st.just(shape),
        st.permutations(range(shape[0] * shape[1])),
        st.lists(st.sampled_from([0.0, 0.5, 1.0, *Verdict]), min_size=20, max_size=20),
        st.integers(0, shape[0] * shape[1]),
    )
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(places)
def test_broken_off_anywhere_a_job_goes_on_with_just_what_has_no_verdict_and_keeps_its_order(drawn: Any) -> None:
    (count, group), finished_in, cames, before = drawn
    tasks = [task(f"t{n}", n=n) for n in range(count)]
    whole = [(one.slug, index) for one in tasks for index in range(group)]

    async def scenario(folder: Path) -> None:
        job, runs = await begun(group=group, runs=folder, tasks=tasks)
        for n in finished_in[:before]:
            await job.finish(over(runs[n], cames[n]))
        assert order(job.runs) == [whole[n] for n in sorted(finished_in[:before])]
        await job.close()
        kept = {run.id: run.to_row() for run in job.runs if run.valid}

        async with await Job.resume(job.id, runs=folder) as again:
            assert order(again.runs) == order(job.runs)
            missing = await again.plan(tasks[::-1], group, CONFIG)  # in another order: the job's stays
            assert order(missing) == [place for n, place in enumerate(whole) if runs[n].id not in kept]
            await asyncio.gather(*(again.finish(over(run)) for run in reversed(missing)))
            assert again.complete
            assert order(again.runs) == whole
            assert {run.id: run.to_row() for run in again.runs if run.id in kept} == kept
            document = again.to_json()

        looked_at = await Job.load(job.id, runs=folder)
        assert looked_at.to_json() == document
        assert names(folder) == ["hudsim.db"]

    with tempfile.TemporaryDirectory() as folder:
        within(25, scenario(Path(folder)))


@on_loop
async def test_each_difference_of_a_resumed_job_is_named(tmp_path: Path) -> None:
    job, _ = await begun(group=4, runs=tmp_path)
    await job.close()
    tasks = [task("a", seed=9), task("b", seed=1), task("d")]
    config = {"agent": "noop", "settings": {"cameras": True}, "retries": 2}
    async with await Job.resume("last", runs=tmp_path) as again:
        with pytest.raises(UsageError) as refused:
            await again.plan(tasks, 8, config)
        assert refused.value.message == (
            f"job {job.id} cannot go on with another plan: group: got 8, the job has 4; "
            "agent: got 'noop', the job has 'oracle'; settings.cameras: got True, the job has False; "
            "retries: got 2, the job has nothing; task a: args.seed: got 9, the job has 0; task d is new; "
            "task c is not there any more"
        )
        assert len(await again.plan(TASKS, 4, {**CONFIG, "retries": None})) == 12  # nothing was used up


@on_loop
async def test_batches_resume_in_the_order_of_the_calls_and_more_may_follow(tmp_path: Path) -> None:
    job, runs = await begun(runs=tmp_path)
    await finish(job, runs)
    second = await job.plan([task("a")], 2, {"step": 1})
    await finish(job, second[:1])
    await job.close()
    async with await Job.resume(job.id[:5], runs=tmp_path) as again:
        assert await again.plan(TASKS, 2, CONFIG) == []
        assert [run.id for run in await again.plan([task("a")], 2, {"step": 1})] == [second[1].id]
        (third,) = await again.plan([task("a")], 1, {"step": 2})
        assert third.id == f"{job.id}-8"
        await again.finish(over(third))
        assert (again.ran, again.expected) == (8, 9)


@on_loop
async def test_one_process_works_on_a_job_and_others_may_look(tmp_path: Path) -> None:
    job, runs = await begun(runs=tmp_path)
    await finish(job, runs[:2])
    with pytest.raises(StoreError, match=f"job {job.id} is being worked on by process"):
        await Job.resume(job.id, runs=tmp_path)
    looked_at = await Job.load("last", runs=tmp_path)
    assert (looked_at.ran, looked_at.expected) == (2, 6)
    with pytest.raises(UsageError, match=r"is closed; Job\.resume"):
        await looked_at.plan(TASKS, 2, CONFIG)
    await job.close()
    await job.close()
    with pytest.raises(UsageError, match="is closed"):
        await job.finish(over(runs[2]))
    async with await Job.resume(job.id, runs=tmp_path) as again:
        assert again.ran == 2


@on_loop
async def test_a_job_that_is_not_there_is_no_new_one_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was kept"):
        await Job.resume("0123abcd", runs=tmp_path / "runs")
    assert names(tmp_path) == []
    job, _ = await begun(runs=tmp_path)
    await job.close()
    with pytest.raises(UnknownName, match=f"There are: {job.id}"):
        await Job.resume("zzz", runs=tmp_path)
    assert names(tmp_path) == ["hudsim.db"]


@on_loop
async def test_a_run_whose_keeping_is_cancelled_is_kept_and_in_its_place(tmp_path: Path) -> None:
    job, runs = await begun(runs=tmp_path)
    keeping = asyncio.create_task(job.finish(over(runs[0])))
    await asyncio.sleep(0)
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert job.runs == [runs[0]]
    assert len((await Job.load(job.id, runs=tmp_path)).runs) == 1
    await job.close()


@on_loop
async def test_a_job_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with await Job.start("letters", runs=None) as job:
        await finish(job, await job.plan(TASKS, 2, CONFIG))
        assert job.complete
    assert names(tmp_path) == []


@on_loop
async def test_traces_are_read_when_they_are_wanted(tmp_path: Path) -> None:
    job, runs = await begun(runs=tmp_path)
    await finish(job, runs)
    await job.close()
    assert (await Job.load(job.id, runs=tmp_path)).runs[0].trace.to_json() == runs[0].trace.to_json()
    async with Store(tmp_path) as store:
        assert (await store.trace(runs[0].id)).content == "3"
