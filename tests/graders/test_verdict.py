from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hudsim.errors import UsageError
from hudsim.graders import Verdict


def test_only_the_harness_s_own_faults_carry_no_reward() -> None:
    assert {verdict for verdict in Verdict if not verdict.valid} == {"grader_error", "infra_error", "cancelled"}
    assert {verdict for verdict in Verdict if verdict.valid} == {
        "passed",
        "partial",
        "failed",
        "tampered",
        "resource_limit",
        "grade_timeout",
    }


@pytest.mark.parametrize(
    ("reward", "verdict"),
    [
        (1.0, "passed"),
        (1, "passed"),
        (1.5, "passed"),
        (math.nextafter(1.0, 0.0), "partial"),
        (0.5, "partial"),
        (5e-324, "partial"),
        (Fraction(1, 3), "partial"),
        (np.float32(0.5), "partial"),
        (0.0, "failed"),
        (-0.0, "failed"),
        (-2.0, "failed"),
    ],
)
def test_a_reward_says_passed_partial_or_failed(reward: Any, verdict: str) -> None:
    assert Verdict.of(reward) is Verdict(verdict)


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, True, "1", None, 10**400])
def test_what_is_no_finite_number_says_nothing(reward: Any) -> None:
    with pytest.raises(UsageError, match="expected a"):
        Verdict.of(reward)


def test_a_verdict_is_its_own_word() -> None:
    assert f"{Verdict.tampered}" == "tampered"
