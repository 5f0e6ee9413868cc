"""Comparisons in hidden tests, of values whose classes came after the tests' own."""

# ruff: noqa: PT009 - the assertions of unittest are what is tested

from __future__ import annotations

import ast
import collections
import dataclasses
import fractions
import json
import operator
import types
import unittest
import weakref
from collections import namedtuple
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from hudsim.graders.running import strict
from hudsim.graders.running.rewriting import rewritten


@pytest.fixture(autouse=True)
def _set_up() -> None:
    strict.setup(comparable=["calc.Version"])


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


@dataclasses.dataclass
class Boxed:
    """A class of the tests."""

    x: Any
    seen: Any = dataclasses.field(default=None, compare=False)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: collections.OrderedDict(a=x),
        lambda x: types.SimpleNamespace(a=x),
        lambda x: types.MappingProxyType({"a": [x]}),
        lambda x: {0: x}.items(),
        lambda x: collections.UserList([x]),
        lambda x: collections.ChainMap({"a": x}),
        Boxed,
    ],
)
def test_nor_is_one_in_a_container_or_a_field_of_what_is_not_the_solutions(wrap: Any) -> None:
    assert strict.compare(("==",), wrap(yes()()), wrap(3)) is False
    assert strict.compare(("==",), wrap(3), wrap(yes()())) is False
    assert strict.compare(("==",), wrap(3), wrap(3)) is True
    point = foreign("Point", __eq__=lambda self, other: type(other) is type(self))
    assert strict.compare(("==",), wrap(point()), wrap(point())) is True


def test_a_field_that_is_not_compared_is_not_looked_at() -> None:
    assert strict.compare(("==",), Boxed([yes()], yes()()), Boxed([yes], 3)) is False
    point = foreign("Point", __eq__=lambda self, other: type(other) is type(self))
    assert strict.compare(("==",), Boxed(point(), yes()()), Boxed(point(), 3)) is True


def test_what_stands_for_another_is_equal_to_nothing() -> None:
    lie = yes()()
    assert strict.compare(("==",), weakref.proxy(lie), 3) is False


def test_a_class_that_came_later_is_the_solutions_wherever_it_is_put(monkeypatch: pytest.MonkeyPatch) -> None:
    late = type("Late", (), {"__module__": "json", "__eq__": lambda self, other: True, "__hash__": None})
    monkeypatch.setattr(json, "Late", late, raising=False)
    assert strict.compare(("==",), late(), 3) is False


def test_what_is_equal_to_everything_counts_where_a_test_has_made_it_alone() -> None:
    anything, approx = strict.meant(mock.ANY), strict.meant(pytest.approx)
    assert strict.compare(("==",), [1, 2], [anything, 2]) is True
    assert strict.compare(("==",), {"a": 1.0}, {"a": approx(1.0 + 1e-9)}) is True
    assert strict.compare(("==",), 1.0, approx(1.0 + 1e-9)) is True
    for lie in (mock.ANY, pytest.approx(0, abs=float("inf")), [mock.ANY]):
        assert strict.compare(("==",), lie, 3 if lie is not list else [3]) is False
        assert strict.compare(("==",), 3, lie) is False
    assert strict.compare(("==",), [mock.ANY], [3]) is False
    assert strict.meant(len) is len


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
    ):
        with pytest.raises(strict.OpaqueValue, match="class Anything"):
            asked()
    assert strict.truth(foreign("Bare")()) is True  # as every object is: it has no say in that


def test_two_that_have_no_order_are_an_error_as_ever() -> None:
    version = foreign("Tag", __lt__=lambda self, other: NotImplemented)()
    with pytest.raises(TypeError, match="not supported between"):
        strict.compare(("<",), version, 3)


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
    maybe = foreign("Maybe", __bool__=lambda self: True)()
    opaque: list[tuple[str, Any]] = [("assertTrue", (maybe,)), ("assertAlmostEqual", (yes()(), 3.0))]
    for assertion, args in opaque:
        with pytest.raises(strict.OpaqueValue):
            getattr(case, assertion)(*args)


def test_nor_do_the_assertions_of_unittest_look_past_what_is_in_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in vars(unittest.TestCase) if name.startswith("assert")]:
        monkeypatch.setattr(unittest.TestCase, name, getattr(unittest.TestCase, name))
    strict.patch_unittest()
    case: Any = unittest.TestCase()
    lie, point = yes()(), foreign("Point", __eq__=lambda self, other: type(other) is type(self))
    for name in ("assertListEqual", "assertSequenceEqual", "assertEqual", "assertCountEqual"):
        getattr(case, name)([1, point()], [1, point()])
        with pytest.raises(AssertionError):
            getattr(case, name)([1, lie], [1, 3])
    with pytest.raises(AssertionError):
        case.assertNotEqual([point()], [point()])


def test_a_mock_was_not_called_with_what_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    call = type(mock.call)
    comparer = getattr(mock, "_AnyComparer")  # noqa: B009
    monkeypatch.setattr(call, "__eq__", call.__eq__)  # undone afterwards
    monkeypatch.setattr(comparer, "__contains__", comparer.__contains__)
    strict.patch_unittest()
    anything = strict.meant(mock.ANY)
    send = mock.Mock()
    send("x", n=3)
    send.assert_called_once_with("x", n=3)
    send.assert_called_with(anything, n=3)
    send.assert_any_call("x", n=anything)
    send.assert_has_calls([mock.call("x", n=3)])
    lied = mock.Mock()
    lied(yes()(), n=yes()())
    for asserted in (lied.assert_called_once_with, lied.assert_called_with, lied.assert_any_call):
        with pytest.raises(AssertionError):
            asserted("x", n=3)
    with pytest.raises(AssertionError):
        lied.assert_has_calls([mock.call("x", n=3)])
    same = yes()()
    lied(same)
    lied.assert_called_with(same)


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
        run(source, x=foreign("Maybe", __bool__=lambda self: True)())


@pytest.mark.parametrize(
    "source",
    [
        "said = operator.eq(x, 3)",
        "from operator import eq as same\nsaid = same(x, 3)",
        "said = all(map(operator.eq, [x], [3]))",
        "said = operator.contains([3], x)",
        "said = [3].count(x) == 1",
        "said = (3, 4).count(x) == 1",
        "said = x == ANY",
        "said = near(0.0) == x",
        "said = 3 in [x]",
    ],
)
def test_what_a_test_calls_to_compare_is_strict_too(source: str) -> None:
    names = {"operator": operator, "ANY": mock.ANY, "near": pytest.approx}
    assert run(source, x=yes()(), **names)["said"] is False


def test_an_object_that_lies_has_no_place_in_a_list() -> None:
    assert run("at = [1, 2, 3, 2].index(2, 2)")["at"] == 3
    point = foreign("Point", __eq__=lambda self, other: type(other) is type(self))
    assert run("at = [1, x, x].index(y, 2)", x=point(), y=point())["at"] == 2
    for source in ("[3].index(x)", "[3].index(x, 0, 1)"):
        with pytest.raises(ValueError, match="is not in it"):
            run(source, x=yes()())


def test_a_test_has_anything_and_about_as_ever() -> None:
    source = """
from unittest.mock import ANY
from unittest import mock
from pytest import approx as near
import pytest
said = [[1, 2] == [ANY, 2], {"a": 1} == {"a": mock.ANY}, 1.0 == near(1.0 + 1e-9), [1.0] == pytest.approx([1.0])]
"""
    assert run(source)["said"] == [True] * 4


def matched(value: Any, cases: str, **names: Any) -> str:
    body = "".join(f"        {line}\n" for line in cases.strip().splitlines())
    return str(run(f"def f(x):\n    match x:\n{body}\n    return 'none'\nsaid = f(x)", x=value, **names)["said"])


CASES = """
case 1 | 2: return 'few'
case 3 if True: return 'three'
case [4, a] | {'n': a}: return f'got {a}'
case int(5): return 'five'
case Kind.A | Kind.B as kind: return kind.name
case str() as text: return text
case None: return 'nothing'
case (('x' | 'y'), *rest): return f'{len(rest)} more'
case _: return 'other'
"""
SAID: list[tuple[Any, str]] = [
    (1, "few"), (2, "few"), (3, "three"), ([4, 0], "got 0"), ({"n": 7}, "got 7"), (5, "five"), (True, "few"),
    ("text", "text"), (None, "nothing"), (("y", 1, 2), "2 more"), ([4], "other"), (6, "other"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "said"), SAID)
def test_a_match_is_what_it_is_in_python(value: Any, said: str) -> None:
    kinds = types.SimpleNamespace(A="A-", B="B-")
    assert matched(value, CASES, Kind=kinds) == said
    names: dict[str, Any] = {"Kind": kinds}
    exec("def f(x):\n    match x:\n" + "".join(f"        {one}\n" for one in CASES.strip().splitlines()), names)
    assert names["f"](value) == said


@pytest.mark.parametrize("case", ["3", "3 | 4", "int(3)", "int()", "Kind.A", "3 as n"])
def test_an_object_that_lies_matches_nothing(case: str) -> None:
    lie = foreign("Int", __eq__=lambda self, other: True, __class__=property(lambda self: int))()
    kinds = types.SimpleNamespace(A=3)
    assert matched(lie, f"case {case}: return 'paid'", Kind=kinds) == "none"
    assert matched([lie], f"case [{case}]: return 'paid'", Kind=kinds) == "none"
    assert matched({"a": lie}, f"case {{'a': {case}}}: return 'paid'", Kind=kinds) == "none"


@pytest.fixture
def solution(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def made(**names: Any) -> None:
        module = types.ModuleType("calc_of_stars")
        vars(module).update(names)
        monkeypatch.setitem(__import__("sys").modules, "calc_of_stars", module)

    return made


def starred(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(rewritten(ast.parse(source), ["calc_of_stars"], strictly=False), "test.py", "exec"), names)
    return names


def test_a_star_gives_what_the_file_uses_and_does_not_have(solution: Callable[..., None]) -> None:
    every = ["add", "sorted", "isclose", "test_mine", "setup_module", "pytestmark", "@stars"]
    solution(__all__=every, **dict.fromkeys(every, "the solution's"))
    names = starred(
        "from math import isclose\nfrom calc_of_stars import *\nsaid = add, sorted, isclose\ndef test_a(): pass"
    )
    assert names["said"][0] == "the solution's"
    assert names["said"][1:] == (sorted, __import__("math").isclose)
    assert set(names) == {"__builtins__", "@stars", "isclose", "add", "said", "test_a"}


def test_without_an_all_a_star_gives_public_names_as_ever(solution: Callable[..., None]) -> None:
    solution(add=1, _hidden=2)
    assert starred("from calc_of_stars import *\nadd, [_hidden for _ in ()]")["add"] == 1
    with pytest.raises(ModuleNotFoundError):
        starred("from calc_of_stars.more import *")
