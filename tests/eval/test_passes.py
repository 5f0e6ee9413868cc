"""``pass_at``: the unbiased estimate, against counting it out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import UsageError
from hudsim.eval.passes import pass_at
from hudsim.eval.run import Run
from hudsim.graders import Verdict
from tests.eval.keeping import member


def runs(passed: int, failed: int) -> list[Run]:
    return [member(n, 1.0 if n < passed else 0.5) for n in range(passed + failed)]


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 6))
def test_it_is_the_share_of_draws_that_hold_a_pass(passed: int, failed: int, k: int) -> None:
    if passed + failed < k:
        with pytest.raises(UsageError, match=f"pass@{k} needs {k} runs"):
            pass_at({"a": runs(passed, failed)}, k)
        return
    draws = list(itertools.combinations([True] * passed + [False] * failed, k))
    assert float(pass_at({"a": runs(passed, failed)}, k)) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_many_runs_do_not_overflow() -> None:
    assert float(pass_at({"a": runs(1, 2999)}, 1000)) == pytest.approx(1 / 3)


def test_the_mean_is_over_tasks_and_those_with_too_few_runs_are_named() -> None:
    broken = [member(0), member(1, Verdict.infra_error), member(2, Verdict.cancelled)]
    found = pass_at({"a": runs(1, 1), "b": runs(0, 2), "c": broken, "d": []}, 2)
    assert found.tasks == {"a": 1.0, "b": 0.0}
    assert found.left_out == {"c": 1, "d": 0}
    assert (found.k, found.value, float(found)) == (2, 0.5, 0.5)


def test_a_solution_s_own_faults_count_as_tries_that_did_not_pass() -> None:
    own = [member(n, verdict) for n, verdict in enumerate(Verdict) if verdict.valid and verdict is not Verdict.passed]
    assert pass_at({"a": [*own, member(9)]}, 1).value == pytest.approx(1 / (len(own) + 1))


@pytest.mark.parametrize("k", [0, -1, True, 1.0])
def test_a_k_that_is_no_number_of_tries_is_refused(k: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        pass_at({"a": runs(1, 1)}, k)


def test_without_a_task_that_has_enough_runs_it_is_refused_and_says_how_many_each_has() -> None:
    with pytest.raises(UsageError, match="there are: a 2, b 1"):
        pass_at({"a": runs(1, 1), "b": runs(0, 1)}, 3)
    with pytest.raises(UsageError, match="no task"):
        pass_at({}, 1)
