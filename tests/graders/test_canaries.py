from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hudsim.graders.canaries import Canaries
from hudsim.graders.report import Report
from tests.graders.grading import HIDDEN


def placed(source: str = HIDDEN, seed: int = 0) -> tuple[Canaries, str, str]:
    canaries = Canaries(random.Random(seed))
    file, text = canaries.add("test_calc.py", source)
    return canaries, file, text


def as_they_should(canaries: Canaries) -> list[Report]:
    return [
        Report(f"{one.id}[{n}]" if one.times > 1 else one.id, "call", one.outcome, False, 0.0, f"… {one.says} …")
        for one in canaries.placed
        for n in range(one.times)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_they_stand_among_the_tests_and_change_none(seed: int) -> None:
    canaries, file, text = placed(seed=seed)
    assert file == "test_calc.py"
    before, after = (
        {ast.unparse(node) for node in ast.parse(one).body if not isinstance(node, ast.Import)}
        for one in (HIDDEN, text)
    )
    assert before <= after
    assert len(after) == len(before) + len(canaries.placed)
    names = {one.id.partition("::")[2] for one in canaries.placed}
    assert len(names) == len(canaries.placed)
    assert all(name.startswith("test_") for name in names)


def test_no_two_grades_have_the_same() -> None:
    assert Canaries().add("a.py", HIDDEN) != Canaries().add("a.py", HIDDEN)


def test_where_every_test_bears_a_mark_they_have_a_file_of_their_own() -> None:
    _, file, text = placed("import pytest\npytestmark = pytest.mark.xfail\ndef test_a():\n    assert False\n")
    assert file != "test_calc.py"
    assert "pytestmark" not in text


def test_pytest_collects_and_reports_each(tmp_path: Path) -> None:
    canaries, file, text = placed()
    (tmp_path / file).write_text(text)
    (tmp_path / "calc.py").write_text("")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), file]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50).stdout
    failing = [one for one in canaries.placed if one.outcome == "failed"]
    assert sum(said.count(f"FAILED {one.id}") == one.times for one in failing) == len(failing)
    assert all(one.says in said for one in canaries.placed if one.outcome == "skipped")


def test_all_as_they_should_be_is_no_evidence() -> None:
    canaries, _, _ = placed()
    reports = as_they_should(canaries)
    assert canaries.wrong(reports) == []
    assert canaries.missing(reports) == []


@pytest.mark.parametrize("n", range(7))
def test_one_that_passes_or_says_something_else_is_evidence(n: int) -> None:
    canaries, _, _ = placed()
    target = canaries.placed[n].id
    for change in ({"outcome": "passed"}, {"message": "other"}, {"xfail": True}):
        reports = [
            Report(**{**{name: getattr(one, name) for name in Report.__slots__}, **change})
            if one.stem == target
            else one
            for one in as_they_should(canaries)
        ]
        assert len(canaries.wrong(reports)) == 1, change


def test_one_that_is_not_reported_or_too_often_is_known() -> None:
    canaries, file, _ = placed()
    reports = as_they_should(canaries)
    assert canaries.missing(reports[1:]) == [file]
    assert canaries.wrong(reports[1:]) == []
    assert len(canaries.wrong([*reports, reports[0]])) == 1
