"""Comparisons in hidden tests, of values whose classes came after the tests' own."""

# ruff: noqa: PT009 - the assertions of unittest are what is tested

from __future__ import annotations

import ast
import fractions
import unittest
from collections import namedtuple
from typing import Any

import pytest

from hudsim.graders.running import strict
from hudsim.graders.running.rewriting import rewritten


@pytest.fixture(autouse=True)
def _set_up() -> None:
    strict.setup(folders=[unittest.__file__.rpartition("/unittest")[0]], comparable=["calc.Version"])


def foreign(name: str, bases: tuple[type, ...] = (), **attributes: Any) -> Any:
    """A class of the solution's."""
    return type(name, bases, {"__module__": "calc", "__hash__": lambda self: 0, **attributes})


def yes(name: str = "Yes", bases: tuple[type, ...] = ()) -> Any:
    return foreign(name, bases, __eq__=lambda self, other: True, __ne__=lambda self, other: False)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: (1, [x]), lambda x: {"a": x}, lambda x: {x}])
def test_an_object_that_says_what_it_is_equal_to_is_not_equal_to_plain_data(wrap: Any) -> None:
    for lie, plain in ((yes()(), 3), (yes("Int", (int,))(4), 3), (yes("Text", (str,))("b"), "a")):
        assert strict.compare(("==",), wrap(lie), wrap(plain)) is False
        assert strict.compare(("==",), wrap(plain), wrap(lie)) is False
        assert strict.compare(("!=",), wrap(lie), wrap(plain)) is True


def test_a_borrowed_method_is_the_solutions_own_too() -> None:
    lie = foreign("Text", (str,), __eq__=str.__ne__)("x")
    assert strict.compare(("==",), lie, "y") is False


def test_two_objects_of_one_class_are_theirs_to_compare() -> None:
    point = foreign("Point", __eq__=lambda self, other: self.x == other.x)
    a, b = point(), point()
    a.x, b.x = 1, 1
    assert strict.compare(("==",), [a], [b]) is True
    b.x = 2
    assert strict.compare(("==",), [a], [b]) is False


def test_plain_data_compares_as_ever() -> None:
    Pair = namedtuple("Pair", "a b")  # noqa: PYI024
    assert strict.compare(("==",), {"a": [1, 2.0]}, {"a": [1, 2]}) is True
    assert strict.compare(("==",), foreign("Mine", (int,))(3), 3) is True
    assert strict.compare(("==",), Pair(1, 2), (1, 2)) is True
    assert strict.compare(("==",), fractions.Fraction(1, 2), 0.5) is True
    assert strict.compare(("<", "<="), 1, 2, 2) is True
    assert strict.compare(("<", "<"), 1, 0, 2) is False
    assert strict.compare(("in",), 3, [1, 2, 3]) is True
    assert strict.truth([]) is False


def test_a_lie_is_in_nothing() -> None:
    assert strict.compare(("in",), yes()(), [1, 2]) is False
    assert strict.compare(("in",), 1, [yes()()]) is False
    assert strict.compare(("not in",), yes()(), [1, 2]) is True


def test_truth_order_and_contents_of_the_solutions_objects_are_not_asked() -> None:
    anything = foreign(
        "Anything", __bool__=lambda self: True, __lt__=lambda s, o: True, __contains__=lambda s, o: True
    )()
    for asked in (
        lambda: strict.truth(anything),
        lambda: strict.bool_of(anything),
        lambda: strict.all_of([anything]),
        lambda: strict.compare(("<",), anything, 3),
        lambda: strict.compare(("in",), 3, anything),
        lambda: strict.truth(foreign("Bare")()),
    ):
        with pytest.raises(strict.OpaqueValue, match=r"class (Anything|Bare)"):
            asked()


def test_a_class_that_the_author_names_may_answer() -> None:
    version = foreign(
        "Version", __eq__=lambda self, other: True, __lt__=lambda s, o: True, __bool__=lambda self: False
    )()
    assert strict.compare(("==",), version, "1.0") is True
    assert strict.compare(("<",), version, "1.0") is True
    assert strict.truth(version) is False


def test_an_object_is_what_its_real_class_says() -> None:
    assert strict.isinstance_of(3, int | str)
    assert not strict.isinstance_of(foreign("Int", __class__=property(lambda self: int))(), int)
    assert strict.isinstance_of(foreign("Mine", (int,))(3), (str, int))
    meta = type("Meta", (type,), {"__instancecheck__": lambda cls, other: True, "__module__": "calc"})
    kind = meta("Kind", (), {"__module__": "calc"})
    assert not strict.isinstance_of(foreign("Other")(), kind)


def test_unittests_assertions_compare_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in vars(unittest.TestCase) if name.startswith("assert")]:
        monkeypatch.setattr(unittest.TestCase, name, getattr(unittest.TestCase, name))  # undone afterwards
    strict.patch_unittest()
    case: Any = unittest.TestCase()
    case.assertEqual([1], [1])
    case.assertIn(1, [1])
    case.assertTrue([1])
    equal: list[tuple[str, Any]] = [
        ("assertEqual", (yes()(), 3)),
        ("assertIn", (yes()(), [1])),
        ("assertEqual", (1, 2)),
    ]
    for assertion, args in equal:
        with pytest.raises(AssertionError):
            getattr(case, assertion)(*args)
    opaque: list[tuple[str, Any]] = [("assertTrue", (yes()(),)), ("assertAlmostEqual", (yes()(), 3.0))]
    for assertion, args in opaque:
        with pytest.raises(strict.OpaqueValue):
            getattr(case, assertion)(*args)


def run(source: str, **names: Any) -> dict[str, Any]:
    exec(compile(rewritten(ast.parse(source)), "test.py", "exec"), names)
    return names


def test_the_comparisons_of_a_test_file_become_strict() -> None:
    source = '''
"""A docstring."""
from __future__ import annotations
equal, unequal, chained, within = x == 3, x != 3, 1 < 2 < 3, x in [3]
kind = isinstance(x, int)
class Own:
    def __eq__(self, other): return True
own = Own() == 3
same = x is x
some = [n for n in range(4) if not n == 2]
'''
    names = run(source, x=yes("Int")())
    assert (names["equal"], names["unequal"], names["within"], names["kind"]) == (False, True, False, False)
    assert names["chained"] is True
    assert names["own"] is True
    assert names["same"] is True
    assert names["some"] == [0, 1, 3]
    assert names["__doc__"] == "A docstring."


@pytest.mark.parametrize(
    "source", ["assert x", "x and 1\nif x: pass", "1 if x else 2", "while x: break", "not x", "[1 for n in [1] if x]"]
)
def test_wherever_truth_is_asked_it_is_asked_strictly(source: str) -> None:
    with pytest.raises(strict.OpaqueValue):
        run(source, x=foreign("Bare")())
