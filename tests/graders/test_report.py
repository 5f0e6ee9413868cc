"""Lines that somebody hostile may have written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.graders.report import Account, Stray

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
        line(event="collected", ids=[], errors=[1]),
        line(event="collected", ids=[], errors=[["a"]]),
        line(event="collected", ids=[], errors=[["a", "b", "c"]]),
    ],
)
def test_whatever_is_written_is_a_line_that_is_refused(stray: bytes) -> None:
    read = Account("t", ready=True)
    with pytest.raises(Stray) as refused:
        read.add(stray)
    str(refused.value).encode()


def test_what_is_read_can_be_written_again() -> None:
    read = Account("t", ready=True)
    read.add(line(event="collected", ids=["a" + HALF], errors=[[HALF, HALF]]))
    read.add(line(event="report", id="a", message="got " + HALF, **PASSED))
    assert read.ids == ["a\\ud800"]
    assert read.errors == [("\\ud800", "\\ud800")]
    assert read.reports[0].message == "got \\ud800"
