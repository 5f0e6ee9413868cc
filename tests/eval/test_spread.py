"""``spread_of``: what a learner has to go by in a group, and what took it away."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import UsageError
from hudsim.eval.run import Run
from hudsim.eval.spread import NARROW_STD, Spread, spread_of, spread_words
from hudsim.graders import EvaluationResult, Verdict
from tests.eval.keeping import member

INVALID = [verdict for verdict in Verdict if not verdict.valid]


def spread(*came: float | Verdict, group: int | None = None) -> Spread:
    return spread_of([member(index, one) for index, one in enumerate(came)], group or len(came))


@pytest.mark.parametrize(
    ("came", "state", "trains"),
    [
        ((0.0, 1.0, 0.5, 0.25), "spread", True),
        ((0.5, 0.51, 0.5, 0.5), "narrow", False),
        ((0.0, 0.0, 0.0, 0.0), "all_zero", False),
        ((1.0, 1.0, 1.0, 1.0), "all_one", False),
        ((0.3, 0.3, 0.3, 0.3), "flat", False),
        ((-0.5, -0.5, -0.5, -0.5), "flat", False),
        ((Verdict.infra_error,) * 4, "errored", False),
        ((0.0, 1.0, Verdict.infra_error, Verdict.cancelled), "partial", True),
        ((1.0, 1.0, 1.0, Verdict.grader_error), "partial", False),
        ((Verdict.tampered, Verdict.grade_timeout, Verdict.resource_limit, 0.0), "all_zero", False),
        ((Verdict.tampered, Verdict.grade_timeout, Verdict.resource_limit, 1.0), "spread", True),
        ((100.0, 101.0, 100.0, 100.5), "narrow", False),
    ],
)
def test_each_state_is_named_and_says_whether_it_trains(
    came: tuple[float | Verdict, ...], state: str, trains: bool
) -> None:
    found = spread(*came)
    assert (found.state, found.trains) == (state, trains)
    assert found.words
    assert "\n" not in found.words


def test_members_that_do_not_count_are_counted_by_their_reason() -> None:
    found = spread(0.0, Verdict.infra_error, 1.0, Verdict.infra_error, Verdict.cancelled, group=8)
    assert found.rewards == (0.0, None, 1.0, None, None, None, None, None)
    assert found.words.startswith("2 of 8 count (2 infra_error, 1 cancelled, 3 missing); of these: rewards from 0 to 1")
    assert (found.mean, found.std) == (0.5, 0.5)


def test_a_group_of_which_nothing_ran_is_errored_and_says_that_it_is_missing() -> None:
    found = spread_of([], 3)
    assert (found.state, found.rewards, found.mean, found.std) == ("errored", (None, None, None), None, None)
    assert "3 missing" in found.words


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.5])
def test_a_group_of_one_says_that_it_has_nothing_to_compare_with(reward: float) -> None:
    found = spread(reward)
    assert not found.trains
    assert "nothing to compare it with" in found.words
    assert "group of 4" in found.words


def test_one_reward_left_of_a_group_is_no_flat_group() -> None:
    found = spread(0.5, Verdict.infra_error)
    assert found.state == "partial"
    assert "nothing to be compared with" in found.words


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_does_not_count_and_is_said(value: float) -> None:
    broken = member(1)
    broken.grade = EvaluationResult.model_construct(reward=value, subscores=None)
    found = spread_of([member(0, 0.5), broken, member(2, 1.0)], 3)
    assert (found.state, found.rewards) == ("partial", (0.5, None, 1.0))
    assert "1 no finite reward" in found.words


def test_members_come_in_any_order_and_are_listed_by_index() -> None:
    found = spread_of([member(2, 0.2), member(0, 0.0), member(1, 0.1)], 3)
    assert found.rewards == (0.0, 0.1, 0.2)


@pytest.mark.parametrize("runs", [[member(0), member(0)], [member(3)]])
def test_runs_that_are_not_of_one_group_are_refused(runs: list[Run]) -> None:
    with pytest.raises(UsageError, match="one of each index below 3"):
        spread_of(runs, 3)


@pytest.mark.parametrize(
    ("reward", "sums", "words"),
    [
        (1.0, (1.0, 1.2, 1.4), "3 rewards were held to 1, but their subscores make 1 to 1.4"),
        (1.0, (1.2, 1.2, 1.2), "3 rewards were held to 1, but their subscores make 1.2"),
        (1.0, (0.5, 0.75, 1.0), "3 rewards are 1, but their subscores make 0.5 to 1"),
        (0.0, (-0.5, -0.25, 0.0), "3 rewards were raised to 0, but their subscores make -0.5 to 0"),
        (0.0, (0.25, 0.5, 0.5), "3 rewards are 0, but their subscores make 0.25 to 0.5"),
        (0.5, (0.25, 0.5, 0.5), "3 rewards are 0.5, but their subscores make 0.25 to 0.5"),
        (1.0, (1.0, 1.0, 1.0), None),
        (0.0, (0.0, 0.0, 0.0), None),
    ],
)
def test_variance_that_a_cap_or_a_floor_took_away_is_named(
    reward: float, sums: tuple[float, ...], words: str | None
) -> None:
    found = spread_of([member(n, reward, [(total, 1.0)]) for n, total in enumerate(sums)], 3)
    assert found.state in ("all_one", "all_zero", "flat")
    assert found.words.endswith(words) if words else "but" not in found.words


def test_a_verdict_that_sets_the_reward_is_no_cap() -> None:
    runs = [member(n, 0.0, [(1.0, 0.5 * n)]) for n in range(3)]
    for run in runs:
        run.verdict = Verdict.tampered
    assert "but" not in spread_of(runs, 3).words


def test_a_job_s_line_names_the_groups_that_cannot_train() -> None:
    groups = {
        "lift-1": spread(0.0, 1.0),
        "lift-2": spread(0.0, 0.0),
        "lift-3": spread(0.0, 0.0),
        "push": spread(Verdict.infra_error, Verdict.infra_error),
        "reach": spread_of([member(0, 0.0), member(1, 1.0)], 3),
    }
    assert spread_words(groups) == (
        "2 of 5 groups can train, 1 of them partial (reach); 2 all_zero (lift-2, lift-3), 1 errored (push)"
    )
    assert spread_words({"a": spread(0.0, 1.0)}) == "1 of 1 groups can train"
    assert "group of 4" in spread_words({"a": spread(1.0), "b": spread(0.0)})
    many = spread_words({f"t{n}": spread(0.0, 0.0) for n in range(9)})
    assert many == "0 of 9 groups can train; 9 all_zero (t0, t1, t2, t3 and 5 more)"


came = st.one_of(
    st.sampled_from([0.0, 1.0]), st.floats(-2, 2), st.sampled_from(INVALID), st.none(), st.sampled_from([0.5, 0.501])
)


@given(st.lists(came, min_size=1, max_size=10))
def test_state_and_moments_are_what_their_definitions_say(drawn: list[Any]) -> None:
    found = spread_of([member(n, one) for n, one in enumerate(drawn) if one is not None], len(drawn))
    there = [one for one in drawn if isinstance(one, float)]
    assert found.rewards == tuple(one if isinstance(one, float) else None for one in drawn)
    assert (found.state == "errored") == (not there)
    assert (found.state == "partial") == (0 < len(there) < len(drawn))
    if not there:
        return
    assert found.mean == pytest.approx(statistics.fmean(there))
    assert found.std == pytest.approx(statistics.pstdev(there), abs=1e-12)
    assert found.std is not None
    if found.trains:
        assert found.std >= NARROW_STD
        assert found.state in ("spread", "partial")
    elif found.state in ("all_zero", "all_one", "flat"):
        assert found.std < 1e-9
    elif found.state == "narrow":
        assert 0 < found.std < NARROW_STD * max(1, *map(abs, there))
