"""``trust``: what each way of running hidden tests stops, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["TRUST", "TrustRow", "trust_card", "trust_table"]


@dataclass(frozen=True, slots=True)
class TrustRow:
    """
    what
        What a solution tries.
    separate, same
        What comes of it in that way: ``no effect``, ``0``, ``tampered``, or ``not stopped``, in words.
    """

    what: str
    separate: str
    same: str


TRUST = (
    TrustRow("edits, deletes or shadows the tests, pytest or the standard library", "no effect", "no effect"),
    TrustRow("plants conftest.py, pytest.ini, plugins, sitecustomize, .pth, dist-info", "no effect", "no effect"),
    TrustRow("exits early, whatever the exit code", "0", "0"),
    TrustRow("skips, or marks as expected to fail", "0", "0"),
    TrustRow("prints or writes a verdict", "no effect", "no effect"),
    TrustRow("hangs (grade_timeout), or uses up memory or processes (resource_limit)", "0", "0"),
    TrustRow("makes the tests' interpreter crash, or itself look like a failure of the harness", "0", "0"),
    TrustRow("exports tests, fixtures, hooks or names of builtins to a test that says from x import *", "no effect",
             "no effect"),
    TrustRow("returns objects that are equal to everything, or true to everything", "0", "0 in files of the tests"),
    TrustRow("returns objects that are equal to everything, where other code compares, as a set or numpy.testing",
             "0", "not stopped"),
    TrustRow("patches pytest's reports, runner or assertions for all tests", "no effect", "tampered"),
    TrustRow("patches builtins or replaces modules for all tests", "no effect", "0 or tampered"),
    TrustRow("writes to the channel of the results", "no effect", "tampered"),
    TrustRow("opens files or reaches into the tests' process through an object that a test hands it", "no effect",
             "not stopped"),
    TrustRow("returns numbers that are close to everything for pytest.approx, or sets equal to all of their size",
             "0", "0"),
    TrustRow("returns objects whose difference from plain data is 0, for abs(x - y) < e", "0 unless comparable",
             "not stopped"),
    TrustRow("returns two of its own objects, compared by its own __eq__", "0 unless comparable", "not stopped"),
    TrustRow("returns two of its own objects, compared by their difference", "not stopped", "not stopped"),
    TrustRow("returns two of its own objects, compared by identity or by the fields of a dataclass", "not stopped",
             "not stopped"),
    TrustRow("returns sets that have in common with any set what it has, for x & y, x.issuperset(y) and assertSetEqual",
             "0 unless comparable", "not stopped"),
    TrustRow("replaces the methods of a spy, or what a mock was asked, before the test asks it", "0", "not stopped"),
    TrustRow("replaces what holds a spy, or a spy of the tests' own class in a container", "not stopped",
             "not stopped"),
    TrustRow("sets the flags of a spy, or fills its lists, before the test looks at them", "not stopped",
             "not stopped"),
    TrustRow("returns objects whose methods or quotients say what a test asks, as x.equals(y) or (x / y).value",
             "not stopped", "not stopped"),
    TrustRow("returns arrays of no elements, where a test asks all of them, as np.allclose and (a == b).all()",
             "not stopped", "not stopped"),
    TrustRow("returns objects that give fewer elements than they say to have, where a test compares by len() and zip()",
             "not stopped", "not stopped"),
    TrustRow("changes an argument from which the test then computes what it expects", "not stopped", "not stopped"),
    TrustRow("reads the test that calls it and returns what that expects", "no effect", "not stopped"),
    TrustRow("patches pytest for the tests that call it alone, or forges reports with what it finds in memory",
             "no effect", "not stopped"),
    TrustRow("answers right by a table of the inputs that the tests use", "not stopped", "not stopped"),
)  # fmt: skip


def trust_card(ways: Iterable[str]) -> dict[str, list[str]]:
    """For tests run in ``ways``: what is ``stopped`` in each of them, and what is ``not_stopped`` in one."""
    ways = set(ways)
    weak = [row.what for row in TRUST if any(getattr(row, way) == "not stopped" for way in ways)]
    return {"stopped": [row.what for row in TRUST if row.what not in weak], "not_stopped": weak}


def trust_table() -> str:
    """All of it, as a Markdown table."""
    rows = [f"| {row.what} | {row.separate} | {row.same} |" for row in TRUST]
    return "\n".join(['| a solution that … | `process="separate"` | `process="same"` |', "|---|---|---|", *rows])
