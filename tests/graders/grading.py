"""A small task to be graded: hidden tests, a right and a wrong solution, and a workspace for each grade."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudsim.coding import Workspace
from hudsim.graders import EvaluationResult, PytestGrader, SubScore

HIDDEN = """
import pytest

import calc


def test_add():
    assert calc.add(1, 2) == 3
    assert calc.add(-1, 1) == 0


@pytest.mark.parametrize("number", [1, 2, 3])
def test_halves(number):
    assert calc.halves([number]) == [number / 2]


def test_is_even():
    assert calc.is_even(4)
    assert not calc.is_even(5)


class TestDivide:
    def test_quotient(self):
        assert calc.divide(6, 3) == 2

    def test_by_nothing(self):
        with pytest.raises(ZeroDivisionError):
            calc.divide(1, 0)


def test_count():
    assert calc.count(["a", "b", "a"]) == {"a": 2, "b": 1}
"""
IDS = [
    "test_calc.py::test_add",
    "test_calc.py::test_halves[1]",
    "test_calc.py::test_halves[2]",
    "test_calc.py::test_halves[3]",
    "test_calc.py::test_is_even",
    "test_calc.py::TestDivide::test_quotient",
    "test_calc.py::TestDivide::test_by_nothing",
    "test_calc.py::test_count",
]
RIGHT = '''
"""Some sums."""


def add(a, b):
    return a + b


def halves(numbers):
    return [number / 2 for number in numbers]


def is_even(number):
    return number % 2 == 0


def divide(a, b):
    if b == 0:
        raise ZeroDivisionError("by nothing")
    return a / b


def count(words):
    found = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found
'''
WRONG = (
    RIGHT.replace("a + b", "a - b")
    .replace("% 2 == 0", "% 2 == 1")
    .replace('raise ZeroDivisionError("by nothing")', "return 0")
)


async def graded(plant: Callable[[Path], None] | str, *, hidden: str = HIDDEN, **options: Any) -> EvaluationResult:
    """The grade of what ``plant`` writes into a fresh workspace; text is that of ``calc.py``."""
    async with Workspace() as workspace:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "test_calc.py").write_text(hidden)
            if isinstance(plant, str):
                (workspace.root / "calc.py").write_text(plant)
            else:
                plant(workspace.root)
            workspace.own()
            given = {"tests": Path(folder), "modules": ("calc",), "timeout": 30, **options}
            return await PytestGrader.evaluate(workspace=workspace, **given)


def outcomes(result: EvaluationResult) -> dict[str, str]:
    """Of each test."""
    return {leaf.name: (leaf.info or {})["outcome"] for leaf in only(result).children or ()}


def about(result: EvaluationResult) -> dict[str, Any]:
    """What the grader says beside the score."""
    return only(result).info or {}


def only(result: EvaluationResult) -> SubScore:
    """The grader's subscore."""
    assert result.subscores is not None
    (subscore,) = result.subscores
    return subscore
