"""What the files of hidden tests do beside comparing: subtests, star imports, helpers, arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudsim.graders import EvaluationResult
from tests.asyncrun import within
from tests.graders.grading import graded, outcomes

both_ways = pytest.mark.parametrize("way", ["separate", "same"])


def grade(solution: Any, hidden: str = "", **options: Any) -> EvaluationResult:
    out: list[EvaluationResult] = []

    async def main() -> None:
        out.append(await graded(solution, hidden=hidden, **options))

    within(55.0, main())
    return out[0]


SUBTESTS = """
import unittest, calc
class TestSquare(unittest.TestCase):
    def test_unittests(self):
        for x, y in [(1, 1), (2, 4), (3, 9)]:
            with self.subTest(x=x):
                self.assertEqual(calc.square(x), y)
def test_pytests(subtests):
    for x in (1, 2, 3):
        with subtests.test(x=x):
            assert calc.square(x) == x ** 2
"""
UNITTESTS, PYTESTS = "test_calc.py::TestSquare::test_unittests", "test_calc.py::test_pytests"


@both_ways
def test_subtests_that_all_pass_are_a_pass(way: str) -> None:
    result = grade("def square(x): return x * x\n", SUBTESTS, process=way)
    assert outcomes(result) == {UNITTESTS: "passed", PYTESTS: "passed"}
    assert result.reward == 1.0


@both_ways
@pytest.mark.parametrize(
    ("solution", "outcome"),
    [
        ("def square(x): return 4 if x == 2 else 1\n", {"failed"}),
        ("import unittest\ndef square(x):\n    if x == 2: raise unittest.SkipTest('no')\n    return x * x\n",
         {"failed", "skipped"}),
    ],
)  # fmt: skip
def test_one_subtest_that_does_not_pass_is_none(way: str, solution: str, outcome: set[str]) -> None:
    result = grade(solution, SUBTESTS, process=way)
    assert set(outcomes(result).values()) <= outcome
    assert result.reward == 0.0


STARS = """
import math
from pytest import approx
from calc import *
def test_sorted(): assert sorted(unique([1, 2, 1])) == [1, 2]
def test_abs(): assert abs(add(1, 2) - 3) < 1e-9
def test_approx(): assert add(1, 2) == approx(3)
def test_isclose(): assert math.isclose(add(1, 2), 3)
def test_isinstance(): assert isinstance(unique([1]), dict)
"""
STARRED = """
__all__ = ["add", "unique", "sorted", "abs", "isinstance", "approx", "math", "setup_module", "pytestmark"]
__all__ += [f"test_{n}" for n in range(99)]
for _name in __all__[9:]: exec(f"def {_name}(): pass")
def add(a, b): return 7.0
def unique(xs): return [7]
def sorted(*a, **o): return [1, 2]
def abs(x): return 0
def isinstance(*a): return True
def approx(*a): return 7.0
def setup_module(): pass
pytestmark = []
class math:
    def isclose(*a, **o): return True
"""


@both_ways
def test_a_solution_does_not_say_what_the_names_of_a_test_file_mean(way: str) -> None:
    result = grade(STARRED, STARS, process=way, score="share")
    assert set(outcomes(result).values()) == {"failed"}
    assert len(outcomes(result)) == 5
    assert result.reward == 0.0


@both_ways
def test_a_star_import_gives_an_honest_solutions_names(way: str) -> None:
    hidden = "from calc import *\ndef test_a():\n    assert [add(1, 2), PI] == [3, 3]\n    assert Point(1).x == 1\n"
    solution = "PI = 3\ndef add(a, b): return a + b\nclass Point:\n    def __init__(self, x): self.x = x\n"
    assert grade(solution, hidden, process=way).reward == 1.0


YES = "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef add(a, b): return Yes()\n"


@both_ways
def test_a_helper_beside_the_tests_compares_as_they_do(way: str, tmp_path: Path) -> None:
    for name, text in {
        "helpers.py": "def check(got, expected):\n    assert got == expected\n",
        "tools/more.py": "def equal(got, expected):\n    return got == expected\n",
        "tools/__init__.py": "",
        "conftest.py": "import pytest\n@pytest.fixture\ndef agree():\n    return lambda a, b: a == b\n",
        "test_calc.py": "import calc\nfrom helpers import check\nfrom tools.more import equal\n"
        "def test_a():\n    check(calc.add(1, 2), 3)\ndef test_b():\n    assert equal(calc.add(1, 2), 3)\n"
        "def test_c(agree):\n    assert agree(calc.add(1, 2), 3)\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = grade(YES, tests=tmp_path, process=way)
    assert set(outcomes(result).values()) == {"failed"}
    right = grade("def add(a, b): return a + b\n", tests=tmp_path, process=way)
    assert right.reward == 1.0, outcomes(right)


def test_a_file_of_the_solutions_is_no_test_whatever_its_name() -> None:
    """Or the classes in it would be the tests' own, which may say what they are equal to."""

    def plant(root: Path) -> None:
        (root / "test_yes.py").write_text(YES)
        (root / "conftest_of_mine.py").write_text(YES)
        (root / "calc.py").write_text("from test_yes import add\nfrom conftest_of_mine import add as more\n")

    hidden = (
        "import calc\ndef test_a():\n    assert calc.add(1, 2) == 3\ndef test_b():\n    assert calc.more(1, 2) == 3\n"
    )
    assert set(outcomes(grade(plant, hidden, process="same")).values()) == {"failed"}


@both_ways
def test_an_array_of_nothing_is_not_about_a_number(way: str) -> None:
    hidden = (
        "import calc, pytest\ndef test_a():\n    assert calc.mean([1, 2]) == pytest.approx(1.5)\n"
        "def test_b():\n    assert pytest.approx(1.5) == calc.mean([1, 2])\n"
        "def test_c():\n    assert calc.mean([1, 2]) == pytest.approx(1.5, abs=1)\n"
    )
    options: dict[str, Any] = {"process": way, "packages": ("numpy",)}
    none = "import numpy as np\ndef mean(xs): return np.empty((0, 1))\n"
    assert set(outcomes(grade(none, hidden, **options)).values()) == {"failed"}
    assert grade("import numpy as np\ndef mean(xs): return np.mean(xs)\n", hidden, **options).reward == 1.0
    assert grade("import numpy as np\ndef mean(xs): return np.array([1.5, 1.5])\n", hidden, **options).reward == 1.0


SAME_ONLY = {
    "ANY": "from unittest.mock import ANY\nadd = lambda a, b: ANY\n",
    "approx": "import pytest\nadd = lambda a, b: pytest.approx(0, abs=float('inf'))\n",
    "in a module of Python's": "import json\nclass Any:\n    def __eq__(self, other): return True\n"
    "Any.__module__ = 'json'\njson.Any = Any\nadd = lambda a, b: Any()\n",
    "of Python's own tests": "try:\n    from test.support import ALWAYS_EQ as yes\nexcept ImportError:\n    yes = 0\n"
    "add = lambda a, b: yes\n",
    "a proxy": "import weakref\nclass Any:\n    def __eq__(self, other): return True\nkept = Any()\n"
    "add = lambda a, b: weakref.proxy(kept)\n",
}


@pytest.mark.parametrize("solution", SAME_ONLY.values(), ids=SAME_ONLY)
def test_what_is_equal_to_everything_is_paid_nothing_in_a_shared_process(solution: str) -> None:
    hidden = (
        "import calc, operator\nfrom unittest import mock\n"
        "def test_a():\n    assert calc.add(1, 2) == 3\n"
        "def test_b():\n    assert [calc.add(1, 2)] == [3]\n"
        "def test_c():\n    assert operator.eq(calc.add(1, 2), 3)\n"
        "def test_d():\n    assert [3].count(calc.add(1, 2)) == 1\n"
        "def test_e():\n    match calc.add(1, 2):\n        case 3: pass\n        case _: raise AssertionError\n"
        "def test_f():\n    send = mock.Mock()\n    send(calc.add(1, 2))\n    send.assert_called_once_with(3)\n"
    )
    assert set(outcomes(grade(solution, hidden, process="same")).values()) == {"failed"}


@both_ways
def test_any_object_is_true_where_not_none_is_meant(way: str) -> None:
    hidden = "import calc\ndef test_a():\n    assert calc.find(1)\n    assert not calc.find(0)\n"
    solution = "class Found: pass\ndef find(n): return Found() if n else None\n"
    assert grade(solution, hidden, process=way).reward == 1.0
