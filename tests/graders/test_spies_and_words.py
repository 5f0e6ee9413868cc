"""Spies that are replaced, words that are no comparison, and names that are no identifiers, in a whole run."""

from __future__ import annotations

from tests.asyncrun import within
from tests.graders.grading import graded, outcomes


def found(solution: str, hidden: str) -> dict[str, str]:
    out: list[dict[str, str]] = []

    async def main() -> None:
        out.append(outcomes(await graded(solution, hidden=hidden)))

    within(55.0, main())
    return {name.partition("::")[2]: outcome for name, outcome in out[0].items()}


NAMES = """
import enum
Sign = enum.Enum("Sign", [("+", 1), ("if", 2)])
class Cell(enum.Enum):
    _ = "."
def sign(word): return Sign[word]
def cell(): return Cell("."), 1
class Clock:
    def __init__(self, t): self.t = t
    def difference(self, other): return self.t - other
def put(some):
    f = some["a"]
    some["a"] = lambda *a, f=f: 7
"""


def test_a_member_may_have_any_name_that_does_nothing() -> None:
    hidden = """
import calc
def test_sign(): assert calc.sign("+").value == 1 and calc.sign("if").name == "if"
def test_cell(): assert calc.cell()[0].value == "."
def test_clock(): assert calc.Clock(10).difference(3) == 7
class Spy: pass
def test_put():
    some = {"a": Spy()}
    calc.put(some)
    assert some["a"]() == 7
"""
    assert set(found(NAMES, hidden).values()) == {"passed"}


LIES = """
class Yes:
    def assert_called_once_with(self, *args): pass
class Bag:
    def __init__(self, some): self.some = some
    def __iter__(self): return iter(self.some)
    def __len__(self): return len(self.some)
class Lie:
    def __and__(self, other): return Bag(other)
    __or__ = __rand__ = __and__
def replace(some): some["send"] = Yes()
def replace_all(some): some[:] = [Yes()]
def drain(some):
    while some: some.pop()("x")
def tags(): return Lie()
"""


def test_what_is_asked_in_place_of_a_mock_or_of_the_elements_is_not_taken() -> None:
    hidden = """
import calc
from unittest import mock
def test_dict(): some = {"send": mock.Mock()}; calc.replace(some); some["send"].assert_called_once_with("x")
def test_list(): some = [mock.Mock()]; calc.replace_all(some); some[0].assert_called_once_with("x")
def test_and(): assert sorted(calc.tags() & {"a"}) == ["a"]
def test_or(): assert len(calc.tags() | {"a"}) == 1
def test_drained(): one = mock.Mock(); calc.drain([one]); one.assert_called_once_with("x")
"""
    assert found(LIES, hidden) == {
        "test_dict": "failed", "test_list": "failed", "test_and": "failed", "test_or": "failed",
        "test_drained": "passed",
    }  # fmt: skip
