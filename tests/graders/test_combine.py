from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import HudsimError, LinkLost, UsageError
from hudsim.graders import EvaluationResult, SubScore, Verdict, combine, combine_all, combine_any
from tests.asyncrun import on_loop


def sub(name: str, value: float, weight: float = 1.0, **fields: Any) -> SubScore:
    return SubScore(name=name, value=value, weight=weight, **fields)


def combined(*subscores: SubScore) -> EvaluationResult:
    return asyncio.run(combine(*subscores))


def shape(result: EvaluationResult) -> list[tuple[str, float]]:
    return [(subscore.name, subscore.weight) for subscore in result.subscores or ()]


def test_positive_weights_are_scaled_to_make_1() -> None:
    result = combined(sub("a", 1, 3), sub("b", 0, 1), sub("c", 1, 0))
    assert result.reward == 0.75
    assert shape(result) == [("a", 0.75), ("b", 0.25), ("c", 0.0)]


def test_penalties_are_kept_and_nothing_is_clamped() -> None:
    result = combined(sub("a", 0.5, 2), sub("slow", 1, -0.75))
    assert result.reward == -0.25
    assert shape(result) == [("a", 1.0), ("slow", -0.75)]
    assert result.outcome is Verdict.failed


@pytest.mark.parametrize("count", [*range(1, 60), 1000])
def test_full_marks_in_any_number_of_parts_are_a_pass(count: int) -> None:
    result = combined(*(sub(str(n), 1, 1 / count) for n in range(count)), sub("penalty", 0, -1))
    assert result.reward == 1.0
    assert result.outcome is Verdict.passed


SUBSCORES = st.lists(
    st.builds(sub, st.sampled_from(["a", "b", "a-1", "b-2"]), st.floats(0, 1), st.floats(-1e6, 1e6)), max_size=6
)


@given(SUBSCORES)
def test_what_combine_gives_adds_up(subscores: list[SubScore]) -> None:
    if not any(subscore.weight > 0 for subscore in subscores):
        with pytest.raises(UsageError, match="expected at least one of positive weight"):
            combined(*subscores)
        return
    before = [subscore.model_copy() for subscore in subscores]
    result = combined(*subscores)
    penalties = -sum(subscore.weight for subscore in subscores if subscore.weight < 0)
    assert -penalties <= result.reward <= 1.0
    assert result.problems() == []
    assert len({name for name, _ in shape(result)}) == len(subscores)
    assert subscores == before


@pytest.mark.parametrize("weights", [(1e9, 1e9), (5e-324, 5e-324), (1e9, 1e9, 1e9), (1e9, 1e-300)])
def test_weights_of_any_size_are_scaled(weights: tuple[float, ...]) -> None:
    result = combined(*(sub(str(n), 1, weight) for n, weight in enumerate(weights)))
    assert result.reward == 1.0
    assert [weight for _, weight in shape(result)] == pytest.approx([weight / sum(weights) for weight in weights])


def test_penalties_that_together_go_beyond_what_a_reward_may_be_are_refused() -> None:
    with pytest.raises(UsageError, match=r"reward: got -19\d+\.0, expected a number from -1e\+09 to 1e\+09"):
        combined(sub("a", 1), sub("b", 1, -1e9), sub("c", 1, -1e9))


def test_a_name_that_is_there_twice_gets_a_number_that_makes_it_new() -> None:
    result = combined(sub("a", 1), sub("a-1", 1), sub("a", 1), sub("b", 1), sub("a", 1))
    assert [name for name, _ in shape(result)] == ["a-2", "a-1", "a-3", "b", "a-4"]


def test_nothing_to_weigh_is_refused() -> None:
    with pytest.raises(UsageError, match="got no subscores, expected at least one"):
        combined()
    with pytest.raises(UsageError, match="got a -1, b 0, expected at least one of positive weight"):
        combined(sub("a", 1, -1), sub("b", 1, 0))


def test_any_is_the_best_and_all_the_worst_and_both_keep_what_they_came_from() -> None:
    parts = [sub("a", 0.25, 2, info={"why": "quarter"}), sub("a", 0.75)]
    for made, name, value in ((combine_any(3, parts), "any", 0.75), (combine_all(3, parts), "all", 0.25)):
        assert (made.name, made.value, made.weight) == (name, value, 3.0)
        assert made.children is not None
        assert [child.name for child in made.children] == ["a-1", "a-2"]
        assert made.children[0].info == {"why": "quarter"}
        assert made.children[0].weight == 2.0
    assert combine_any(1, parts, name="either").name == "either"
    assert [part.name for part in parts] == ["a", "a"]


@pytest.mark.parametrize("make", [combine_any, combine_all])
def test_any_and_all_of_nothing_are_refused(make: Callable[..., SubScore]) -> None:
    with pytest.raises(UsageError, match="got no subscores"):
        make(1.0, [])
    with pytest.raises(UsageError, match="item 2 of 2: got a float, expected a SubScore"):
        make(1.0, [sub("a", 1), 0.5])
    with pytest.raises(UsageError, match="weight: got nan"):
        make(math.nan, [sub("a", 1)])


# -- what is waited for ------------------------------------------------------------------------------------------------


@on_loop
async def test_items_run_at_once_and_keep_their_places() -> None:
    started = asyncio.Barrier(3)

    async def grade(name: str) -> SubScore:
        await started.wait()  # returns only when all three have come
        return sub(name, 1)

    future: asyncio.Future[SubScore] = asyncio.get_running_loop().create_future()
    future.set_result(sub("future", 1))
    task = asyncio.create_task(grade("task"))
    result = await combine(grade("x"), sub("plain", 1), future, task, grade("y"))
    assert [name for name, _ in shape(result)] == ["x", "plain", "future", "task", "y"]


@on_loop
async def test_one_that_raises_ends_the_others_and_is_named() -> None:
    ended: list[str] = []

    async def waits(name: str) -> SubScore:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # its own clean-up is waited for
            ended.append(name)
        raise AssertionError

    async def fails() -> SubScore:
        await asyncio.sleep(0)
        raise LinkLost("the sandbox is gone") from OSError("reset")

    task = asyncio.create_task(waits("task"))
    with pytest.raises(LinkLost, match="the sandbox is gone") as failed:
        await combine(sub("a", 1), waits("coroutine"), task, fails())
    assert sorted(ended) == ["coroutine", "task"]
    (note,) = failed.value.__notes__
    assert note.startswith("combine: item 4 of 4, ")
    assert note.endswith("fails")
    assert isinstance(failed.value.__cause__, OSError)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@on_loop
async def test_what_an_item_raises_while_it_is_ended_does_not_hide_the_first_error() -> None:
    async def fails_late() -> SubScore:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("late")

    async def fails() -> SubScore:
        await asyncio.sleep(0)
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        await combine(fails_late(), fails())


@on_loop
async def test_to_cancel_combine_cancels_what_it_waits_for() -> None:
    running, ended = asyncio.Event(), asyncio.Event()

    async def waits() -> SubScore:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    task = asyncio.create_task(combine(waits(), sub("a", 1)))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


@on_loop
async def test_combine_in_a_task_that_was_cancelled_already_leaves_no_coroutine_unawaited() -> None:
    async def waits() -> SubScore:
        await asyncio.Event().wait()
        raise AssertionError

    async def cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await combine(waits(), waits())

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancelled())


@on_loop
async def test_an_item_that_somebody_else_cancelled_is_an_error_not_a_cancellation() -> None:
    future: asyncio.Future[SubScore] = asyncio.get_running_loop().create_future()
    future.cancel()
    with pytest.raises(HudsimError, match=r"item 2 of 2, .*cancelled by somebody else"):
        await combine(sub("a", 1), future)


@on_loop
async def test_what_is_no_subscore_is_refused_and_leaves_no_coroutine_unawaited() -> None:
    async def number() -> Any:
        return 0.5

    async def fine() -> SubScore:
        return sub("fine", 1)

    wrong: list[tuple[Any, str]] = [(0.5, "float"), (number(), "float"), ("x", "str")]
    for item, kind in wrong:
        others: list[Awaitable[SubScore]] = [fine(), fine()]
        with pytest.raises(UsageError, match=rf"combine: item 2 of 3, .*: got a {kind}, expected a SubScore"):
            await combine(others[0], item, others[1])
    coroutine = fine()
    with pytest.raises(UsageError, match=r"got a coroutine, expected a SubScore \(await it first\)"):
        combine_any(1.0, [coroutine])  # type: ignore[list-item]
    coroutine.close()


def evident(verdict: str, value: float = 0.0, weight: float = 1.0) -> SubScore:
    return sub(verdict, value, weight, info={"verdict": verdict})


@pytest.mark.parametrize("verdict", ["tampered", "resource_limit", "grade_timeout"])
def test_a_verdict_with_evidence_becomes_the_grades_and_nothing_is_paid(verdict: str) -> None:
    result = combined(sub("a", 1), evident(verdict))
    assert (result.reward, result.outcome, result.outcome.valid) == (0.0, Verdict(verdict), True)
    assert result.problems() == []
    assert result.to_frame()["verdict"] == verdict


def test_the_gravest_verdict_is_the_grades() -> None:
    assert combined(evident("grade_timeout"), evident("tampered"), sub("a", 1)).outcome is Verdict.tampered
    assert combined(evident("grade_timeout"), evident("resource_limit")).outcome is Verdict.resource_limit


def test_a_penalty_that_could_not_be_measured_pays_nothing_either() -> None:
    assert combined(sub("a", 1), evident("grade_timeout", weight=-0.5)).reward == 0.0
    assert combined(sub("a", 1), sub("slow", 1, -2), evident("tampered")).reward == -1.5


def test_other_verdicts_in_info_mean_nothing() -> None:
    for word in ("passed", "infra_error", "nonsense", 3, None):
        assert combined(sub("a", 1, info={"verdict": word})).outcome is Verdict.passed


def test_the_best_of_some_is_tampered_if_one_is_and_has_another_verdict_only_if_it_is_the_bests() -> None:
    tampered = combine_any(1, [sub("a", 1), evident("tampered")])
    assert (tampered.value, tampered.info) == (0.0, {"verdict": "tampered"})
    hung = combine_any(1, [sub("a", 1), evident("grade_timeout")])
    assert (hung.value, hung.info) == (1.0, None)
    assert combine_any(1, [sub("a", 0), evident("grade_timeout")]).info == {"verdict": "grade_timeout"}
    assert combine_all(1, [sub("a", 1), evident("grade_timeout")]).info == {"verdict": "grade_timeout"}
    assert combine_all(1, [sub("a", 1), sub("b", 1)]).info is None


def test_one_subscore_alone_carries_its_verdict() -> None:
    result = EvaluationResult(reward=0.0, subscores=[evident("tampered")])
    assert result.outcome is Verdict.tampered
    assert EvaluationResult(reward=1.0, subscores=[evident("grade_timeout", 1.0)]).outcome is Verdict.passed


@on_loop
async def test_an_exit_in_a_grader_is_an_error_and_ends_no_loop() -> None:
    async def leaves() -> SubScore:
        sys.exit(3)

    with pytest.raises(HudsimError, match=r"combine: item 1 of 1, .*: raised SystemExit: 3"):
        await combine(leaves())
