"""``hudsim show`` of a run in a workspace."""

from __future__ import annotations

import re

import pytest

from tests.cli.command import document, hudsim
from tests.cli.halves import write_halves


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run whose agent used commands and files, and solved half of it."""
    folder = write_halves(tmp_path_factory.mktemp("work"))
    document("eval", "env.py", "agents.py:work", cwd=folder)
    done = hudsim("show", "last-0", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_commands_are_there_with_their_ends_and_what_they_printed(page: str) -> None:
    assert "$ echo one; echo two >&2; exit 3  exit code 3" in page
    assert "$ sleep 60  timed out" in page
    lines = [line.strip() for line in page.splitlines()]
    assert lines.index("two") == lines.index("one") + 1


def test_the_files_that_changed_are_there_as_a_diff(page: str) -> None:
    assert "sums.py  modified, " in page
    assert "\n-    return n\n+    return abs(n) // 2\n" in page


def test_each_hidden_test_is_a_line_those_that_failed_first(page: str) -> None:
    assert "3 tests: passed 2, failed 1" in page
    tests = [line.split()[:2] for line in page.splitlines() if line.startswith("test_sums.py::")]
    assert tests[0] == ["test_sums.py::test_half_of_a_negative_number", "failed"]
    assert [outcome for _, outcome in tests] == ["failed", "passed", "passed"]


def test_what_grading_cannot_stop_is_said(page: str) -> None:
    assert re.search(r"not stopped +\d+ ways to cheat, see docs/coding.md or --json", page)
    assert "_parameters" not in page
