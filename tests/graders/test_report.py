"""Lines that somebody hostile may have written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.graders.report import Account, Stray
from hudsim.graders.running.runner import MOST_TESTS

HALF = "\ud800"
PASSED: dict[str, Any] = {"when": "call", "outcome": "passed", "xfail": False, "seconds": 0.5}


def line(**message: Any) -> bytes:
    return json.dumps({"token": "t", **message}).encode() + b"\n"


@pytest.mark.parametrize(
    "stray",
    [
        line(token=HALF, event="ready"),
        line(token="x" * 10_000, event="ready"),
        b'{"token": ' + b"[" * 900 + b"]" * 900 + b"}",
        line(event=HALF),
        line(event=[[]]),
        line(event="test"),
        line(event="test", id=["a"]),
        line(event="broken", id="a"),
        line(event="broken", id="a", message=1),
        line(event="reason", id="a", why=None),
        line(event="report", id="a", message="", **PASSED),
    ],
)
def test_whatever_is_written_is_a_line_that_is_refused(stray: bytes) -> None:
    read = Account("t", ready=True)
    with pytest.raises(Stray) as refused:
        read.add(stray)
    str(refused.value).encode()


def test_what_is_read_can_be_written_again() -> None:
    read = Account("t", ready=True)
    read.add(line(event="test", id="a" + HALF))
    read.add(line(event="broken", id=HALF, message=HALF))
    read.add(line(event="collected"))
    read.add(line(event="report", id="a", message="got " + HALF, **PASSED))
    assert read.ids == ["a\\ud800"]
    assert read.errors == [("\\ud800", "\\ud800")]
    assert read.reports[0].message == "got \\ud800"


def test_there_are_no_more_lines_than_tests() -> None:
    read = Account("t", ready=True, ids=["a"] * MOST_TESTS, reasons={str(n): "" for n in range(2 * MOST_TESTS)})
    for more in (line(event="test", id="a"), line(event="reason", id="a", why="so")):
        with pytest.raises(Stray, match="more lines than there can be"):
            read.add(more)
