"""What an author is told of hidden tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudsim import registry
from hudsim.eval import LocalRuntime
from hudsim.eval.taskset import OnEvent
from hudsim.testing import ATTACKS
from hudsim.testing.validation import Options, validate
from tests.asyncrun import within

ENV = """
from pathlib import Path
from hudsim import Environment, Taskset
from hudsim.graders import PytestGrader

HERE = Path(__file__).parent
env = Environment("doubles")
ws = env.workspace("doubles")

@env.template()
async def double():
    (ws.root / "sums.py").write_text("CASES = [0, 1, 2]\\ndef double(n):\\n    return n\\n")
    yield "double(4) is 8"
    yield await PytestGrader.evaluate(workspace=ws, tests=HERE / "hidden", modules=("sums",), timeout=20{options})

@double.reference
def doubled():
    return {{"files": {{"sums.py": "CASES = [0, 1, 2]\\ndef double(n):\\n    return 2 * n\\n"}}}}

tasks = Taskset("doubles", [double()])
"""
TESTS = """
import pytest
import sums

@pytest.mark.parametrize("n", sums.CASES)
def test_double(n):
    assert sums.double(n) == n + n
"""
IDS = [f"test_sums.py::test_double[{n}]" for n in range(3)]


def validated(folder: Path, **options: Any) -> dict[str, str]:
    """Of the one attack that matters here: by solution, what is said."""
    (folder / "hidden").mkdir()
    (folder / "hidden" / "test_sums.py").write_text(TESTS)
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    (folder / "env.py").write_text(ENV.format(options=given))
    found: dict[str, str] = {}

    @contextlib.contextmanager
    def unwatched(title: str, count: int) -> Iterator[OnEvent]:
        yield lambda happened, run: None

    async def main() -> None:
        attacks = [one for one in ATTACKS if one.name == "fewer-cases"]
        asked = Options(times=1, attacks=attacks, max_concurrent=2, grade_timeout_s=40.0, watch=unwatched)
        source = registry.taskset(str(folder / "env.py"))
        oracle = registry.agent("oracle")
        async with LocalRuntime(source.file, reveal=True) as provider:
            sections = [one async for one in validate(source.taskset, source.file, provider, oracle, asked)]
        found.update({one.what.rpartition(", ")[2]: str(one) for one in sections[-1].findings if not one.ok})

    within(50.0, main())
    return found


def test_an_author_is_told_that_the_solution_says_which_tests_there_are(tmp_path: Path) -> None:
    found = validated(tmp_path)
    assert set(found) == {"wrong solution", "right solution"}
    assert "reward 1" in found["wrong solution"]  # its first case is 0, which it doubles well
    assert "2 of 3 hidden tests are gone" in found["right solution"]
    assert all(one in found["right solution"] for one in IDS)


@pytest.mark.parametrize("expected", [IDS])
def test_expected_tests_are_all_there_whatever_the_solution_says(tmp_path: Path, expected: list[str]) -> None:
    assert validated(tmp_path, expected=expected) == {}
