from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.graders.report import Account, Report, Stray
from hudsim.graders.tally import tally, wanted_ids

ID = "test_a.py::test_x"


def account(*reports: Report, errors: list[tuple[str, str]] | None = None) -> Account:
    return Account("t", ready=True, ids=[], errors=errors or [], reports=list(reports))


def phases(id: str = ID, **changed: Any) -> list[Report]:  # noqa: A002
    out = []
    for when in ("setup", "call", "teardown"):
        fields: dict[str, Any] = {"outcome": "passed", "xfail": False, "seconds": 0.1, "message": ""}
        fields |= changed.get(when, {})
        out.append(Report(id, when, **fields))
    return out


def outcome(*reports: Report, **options: Any) -> tuple[str, float]:
    (leaf,) = tally([ID], [account(*reports, **options)])
    assert leaf.info is not None
    return leaf.info["outcome"], leaf.value


def test_only_a_test_that_was_set_up_called_and_torn_down_once_passes() -> None:
    whole = phases()
    assert outcome(*whole) == ("passed", 1.0)
    for reports in (whole[:2], whole[1:], [whole[0], whole[2]], [whole[1], whole[0], whole[2]], []):
        assert outcome(*reports) == ("missing", 0.0)
    assert outcome(*whole, *whole) == ("duplicate", 0.0)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"call": {"outcome": "failed"}}, "failed"),
        ({"call": {"outcome": "skipped"}}, "skipped"),
        ({"setup": {"outcome": "skipped"}}, "skipped"),
        ({"setup": {"outcome": "failed"}}, "error"),
        ({"teardown": {"outcome": "failed"}}, "error"),
        ({"call": {"outcome": "skipped", "xfail": True}}, "xfailed"),
        ({"call": {"xfail": True}}, "xpassed"),
    ],
)
def test_what_is_no_plain_pass_is_none(changed: dict[str, Any], expected: str) -> None:
    assert outcome(*phases(**changed)) == (expected, 0.0)


def test_a_file_that_cannot_be_collected_is_a_leaf() -> None:
    broken = account(errors=[("test_a.py", "ImportError: calc")])
    assert [(leaf.name, leaf.value) for leaf in tally([], [broken])] == [("test_a.py", 0.0)]
    assert outcome(errors=[("test_a.py", "ImportError: calc")]) == ("error", 0.0)


def test_the_tests_that_must_pass_are_those_expected_or_all_that_there_are() -> None:
    assert wanted_ids(["a.py::b"], ["a.py::c"], ["a.py::d"]) == ["a.py::b"]
    assert wanted_ids(None, ["a.py::c[1]", "a.py::c[2]"], ["a.py::c", "a.py::d"]) == [
        "a.py::c[1]",
        "a.py::c[2]",
        "a.py::d",
    ]


def line(**message: Any) -> bytes:
    return json.dumps({"token": "t", **message}).encode() + b"\n"


REPORT: dict[str, Any] = {"id": ID, "when": "call", "outcome": "passed", "xfail": False, "seconds": 0.5, "message": ""}


def test_an_account_is_read_in_its_order() -> None:
    read = Account("t")
    for one in (
        line(event="ready"),
        line(event="test", id=ID),
        line(event="broken", id="b.py", message="why"),
        line(event="collected"),
        line(event="report", **REPORT),
        line(event="reason", id=ID, why="async"),
        line(event="end", status=0),
    ):
        assert not read.ended
        read.add(one)
    assert (read.ids, read.errors, read.reports, read.status) == ([ID], [("b.py", "why")], [Report(**REPORT)], 0)
    assert read.reasons == {ID: "async"}


@pytest.mark.parametrize(
    "stray",
    [
        b"5 passed\n",
        b"[]\n",
        b"\xff\xfe\n",
        b"[" * 100_000,
        json.dumps({"event": "end", "status": 0}).encode(),
        json.dumps({"token": "u", "event": "end", "status": 0}).encode(),
        json.dumps({"token": ["t"], "event": "end", "status": 0}).encode(),
        line(event="ready"),
        line(event="collected"),
        line(event="test", id=ID),
        line(event="broken", id="b.py", message="why"),
        line(event="end"),
        line(event="end", status="0"),
        line(event="nonsense"),
        line(event="report", **{**REPORT, "outcome": "PASSED"}),
        line(event="report", **{**REPORT, "when": "now"}),
        line(event="report", **{**REPORT, "xfail": 0}),
        line(event="report", **{**REPORT, "seconds": float("nan")}),
        line(event="report", **{**REPORT, "id": 3}),
    ],
)
def test_a_line_that_is_not_the_runners_is_refused(stray: bytes) -> None:
    read = Account("t")
    read.add(line(event="ready"))
    read.add(line(event="test", id=ID))
    read.add(line(event="collected"))
    with pytest.raises(Stray):
        read.add(stray)


@pytest.mark.parametrize("one", [None, 3, [ID], {}])
def test_a_test_that_is_none_is_refused(one: Any) -> None:
    read = Account("t")
    read.add(line(event="ready"))
    with pytest.raises(Stray):
        read.add(line(event="test", id=one))


def test_nothing_comes_after_the_end() -> None:
    read = Account("t")
    read.add(line(event="ready"))
    read.add(line(event="end", status=0))
    with pytest.raises(Stray, match="after the end"):
        read.add(line(event="ready"))
