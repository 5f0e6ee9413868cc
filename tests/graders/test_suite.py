from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import UsageError
from hudsim.graders.suite import Suite, expected_ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("test_a.py", "sub/b_test.py", "helpers.py", "data/x.json", "__pycache__/test_a.pyc", "test_c.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("def test_x(): pass\n")
    return tmp_path


def test_a_folder_is_copied_whole_but_for_bytecode(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    suite = Suite.read(folder, "separate")
    assert dict(suite.ways) == {"test_a.py": "separate", "sub/b_test.py": "separate"}
    to = tmp_path_factory.mktemp("to") / "tests"
    suite.copy(to, {"test_a.py": "changed", "new.py": "new"})
    found = {path.relative_to(to).as_posix(): path.read_text() for path in to.rglob("*") if path.is_file()}
    assert set(found) == {"test_a.py", "sub/b_test.py", "helpers.py", "data/x.json", "new.py"}
    assert (found["test_a.py"], found["new.py"]) == ("changed", "new")
    assert {path.stat().st_mode & 0o777 for path in to.rglob("*")} == {0o755, 0o644}


def test_one_file_is_a_suite(folder: Path) -> None:
    suite = Suite.read(folder / "helpers.py", "same")
    assert (suite.files, dict(suite.ways)) == (("helpers.py",), {"helpers.py": "same"})


def test_the_first_pattern_that_matches_says_the_way(folder: Path) -> None:
    suite = Suite.read(folder, {"sub/*": "same", "test_*": "separate"})
    assert dict(suite.ways) == {"test_a.py": "separate", "sub/b_test.py": "same"}
    assert dict(Suite.read(folder, {"nothing": "same"}).ways) == {"test_a.py": "separate", "sub/b_test.py": "separate"}


@pytest.mark.parametrize(("process", "says"), [("both", "got 'both'"), ({"*": "apart"}, "got 'apart'")])
def test_a_way_that_is_none_is_refused(folder: Path, process: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"process: {says}, expected separate or same"):
        Suite.read(folder, process)


def test_a_suite_without_tests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").touch()
    with pytest.raises(UsageError, match="no test is no grade"):
        Suite.read(tmp_path, "separate")
    with pytest.raises(UsageError, match="there is none"):
        Suite.read(tmp_path / "nowhere", "separate")


def test_what_can_be_read_in_a_file_is_known_without_running_it(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "raise SystemExit\ndef test_x(): pass\nasync def test_y(): pass\ndef helper(): pass\n"
        "class TestZ:\n    def test_in(self): pass\n    class TestInner:\n        def test_deep(self): pass\n"
        "class Other:\n    def test_no(self): pass\n"
    )
    assert Suite.read(tmp_path, "same").stems("test_a.py") == [
        "test_a.py::test_x", "test_a.py::test_y", "test_a.py::TestZ::test_in", "test_a.py::TestZ::TestInner::test_deep",
    ]  # fmt: skip


def test_expected_ids_come_as_a_list_or_in_a_file(folder: Path, tmp_path: Path) -> None:
    suite = Suite.read(folder, "separate")
    ids = ["test_a.py::test_x[1]", "sub/b_test.py::test_y"]
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    (tmp_path / "ids.txt").write_text("\n".join(ids) + "\n")
    for given in (ids, tmp_path / "ids.json", tmp_path / "ids.txt"):
        assert expected_ids(given, suite) == ids
    assert expected_ids(None, suite) is None


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([], "no test ids, which nothing could fail"),
        (["", " "], "no test ids"),
        (["test_a.py::x", "test_a.py::x"], "more than once"),
        (["test_q.py::x"], "there are the files sub/b_test.py, test_a.py"),
    ],
)
def test_expected_ids_that_cannot_be_are_refused(folder: Path, ids: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        expected_ids(ids, Suite.read(folder, "separate"))
