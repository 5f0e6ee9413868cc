"""What a losing solution does so that nobody can say it lost: a valid 0 all the same, and no error to be run again."""

from __future__ import annotations

import pytest

from hudsim.errors import SandboxError
from hudsim.graders import EvaluationResult, Verdict
from tests.asyncrun import within
from tests.graders.grading import RIGHT, graded, only, outcomes

HIDDEN = "import calc\ndef test_add():\n    assert calc.add(1, 2) == 3\n"
ADD = "test_calc.py::test_add"

DIES_AS_TEXT = """
import os
class Ending:
    def __str__(self):
        raise SyntaxError("no", ("f", Last(), 1, "x"))
class Last:
    def __str__(self): os._exit(0)
def add(a, b):
    raise SyntaxError("no", ("f", Ending(), 1, "x"))
"""
LONG_NAME = """
def add(a, b):
    return type("\\U0001f600" * 1_500_000, (), {"__eq__": lambda self, other: True})()
"""
LONG_MESSAGE = """
def add(a, b):
    raise ValueError("\\U0001f600" * 3_000_000)
"""


def grade(solution: str, hidden: str = HIDDEN, **options: object) -> EvaluationResult:
    out: list[EvaluationResult] = []

    async def main() -> None:
        out.append(await graded(solution, hidden=hidden, **{"timeout": 40, **options}))

    within(55.0, main())
    return out[0]


@pytest.mark.parametrize("solution", [DIES_AS_TEXT, LONG_NAME, LONG_MESSAGE], ids=["dies", "name", "message"])
def test_whatever_a_solution_raises_or_returns_it_has_failed(solution: str) -> None:
    result = grade(solution)
    assert (result.reward, result.outcome.valid) == (0.0, True)
    assert outcomes(result)[ADD] in {"failed", "missing"}


CASES = """
import calc, pytest
@pytest.mark.parametrize("word", calc.CASES, ids=str)
def test_case(word):
    assert calc.turned(word) == word[::-1]
def test_turned():
    assert calc.turned("abc") == "cba"
"""
MANY = "CASES = ['a'] + [str(n) for n in range(20_001)]\ndef turned(word): return word\n"
WORDY = "CASES = ['a'] + [str(n) + 'a' * 4000 for n in range(1500)]\ndef turned(word): return word\n"
LONG = "CASES = ['a', 'a' * 20_000_000]\ndef turned(word): return word\n"


@pytest.mark.parametrize(
    "expected", [None, ["test_calc.py::test_case[a]", "test_calc.py::test_turned"]], ids=["all", "two"]
)
@pytest.mark.parametrize(
    ("solution", "turned"), [(MANY, "error"), (WORDY, "error"), (LONG, "failed")], ids=["many", "wordy", "long"]
)
def test_a_solution_that_names_too_many_tests_or_too_long_ones_has_failed(
    solution: str, turned: str, expected: list[str] | None
) -> None:
    result = grade(solution, CASES, expected=expected)
    assert (result.reward, result.outcome) == (0.0, Verdict.failed)
    if expected is not None:
        assert outcomes(result)["test_calc.py::test_turned"] == turned


ENDS = "import calc, os, signal\ndef test_a():\n    assert calc.add(1, 2) == 3\ndef test_b():\n    {}\n"


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGSEGV)", "os.abort()", "os._exit(1)"])
def test_a_runner_that_crashes_over_what_it_was_given_is_a_valid_0(how: str) -> None:
    result = grade(RIGHT, ENDS.format(how))
    assert (result.reward, result.outcome) == (0.0, Verdict.failed)
    assert outcomes(result) == {"test_calc.py::test_a": "passed", "test_calc.py::test_b": "missing"}


def test_a_runner_that_somebody_kills_is_an_error_and_no_0() -> None:
    with pytest.raises(SandboxError, match="ended before its end"):
        grade(RIGHT, ENDS.format("os.kill(os.getpid(), signal.SIGKILL)"))


RAISES_OURS = """
import sys
def add(a, b):
    frame = sys._getframe()
    while "CannotCross" not in frame.f_globals: frame = frame.f_back
    raise frame.f_globals["CannotCross"]("thread", "got a call from another thread of the tests")
"""


def test_an_error_of_the_boundarys_own_name_is_no_reason_why_a_test_cannot_work() -> None:
    result = grade(RAISES_OURS)
    assert outcomes(result) == {ADD: "failed"}
    assert [(leaf.info or {}).get("crossing") for leaf in only(result).children or ()] == [None]
