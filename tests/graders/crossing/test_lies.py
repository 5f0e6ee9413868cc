"""Objects of the solution that say what a test would like to hear, and honest ones that look like them."""

from __future__ import annotations

import datetime as dt
import importlib
import math
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hudsim.graders.crossing.errors import OpaqueValue, SolutionGone
from hudsim.graders.crossing.tests_side import Crossing
from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc.py": """
        import collections, collections.abc, dataclasses, datetime, enum, fractions, gc, numbers, sys, typing

        def yes(self, other=None): return True

        # An enum of any members ---------------------------------------------------------------------------------------
        class Listing(enum.EnumMeta):
            __members__ = property(lambda cls: {name: Held(value) for name, value in FAKE[cls.__name__].items()})
        class Held:
            def __init__(self, value): self.value = value
        class Equal(enum.Enum, metaclass=Listing): A = 1
        class Hidden(enum.Enum, metaclass=Listing): A = 1
        FAKE = {"Equal": {"__eq__": yes, "__hash__": yes, "A": 1}, "Hidden": {"_missing_": yes, "A": 1}}

        # Forged descriptions and values -------------------------------------------------------------------------------
        def honest(kind): return describing(kind)
        class Root(numbers.Complex): pass
        class Close(Root):
            def __add__(self, other): return 0.0
            __radd__ = __add__
            def __neg__(self): return self
            def __abs__(self): return 0.0
        class Within:
            def __contains__(self, other): return True
        Root.__abstractmethods__ = Close.__abstractmethods__ = frozenset()
        SAID = {"Root": {"dunders": ()}, "Within": {"dunders": ("=__contains__", "=__bool__")},
                "Close": {"dunders": ("__add__", "__radd__", "__neg__", "__abs__", "__round__")}}
        def forge():
            peer = next(one for one in gc.get_objects() if type(one).__name__ == "Peer")
            names = type(peer.objects)._described_class.__globals__
            described = names["describe_class"]
            def lie(kind, **options):
                return tuple((dict(described(kind, **options)) | SAID.get(kind.__name__, {})).items())
            names["describe_class"] = lie
            names = type(peer._encoder()).value.__globals__
            parts_of = names["parts_of"]
            def parts(value):
                return ("fraction", (Whole(),)) if type(value) is fractions.Fraction else parts_of(value)
            names["parts_of"] = parts
        def close(): forge(); return Close()
        def within(): forge(); return Within()
        def made_of_handles(): forge(); return fractions.Fraction(1, 2)
        class Part:
            def __init__(self): self.times = 0
            def __index__(self): return 1
            def __mul__(self, other):
                self.times += 1
                return int(self.times % 2 == 0)
            __rmul__ = __mul__
        class Whole(int):
            numerator = denominator = Part()
        class Third(fractions.Fraction):
            def as_integer_ratio(self): return self.numerator, self.denominator
            numerator = denominator = _numerator = _denominator = Part()
        class Many(collections.Counter):
            def __getitem__(self, key): return 10 ** 9

        # What says how far it is --------------------------------------------------------------------------------------
        class Gap:
            days = 0
            def total_seconds(self): return 0.0
            def __pow__(self, other): return 0.0
            def __iter__(self): return iter(())
            def __float__(self): return 1.0
        class Near:
            def __sub__(self, other): return Gap()
            __rsub__ = __isub__ = __xor__ = __rxor__ = __sub__
            def __truediv__(self, other): return 1.0
            __rtruediv__ = __truediv__
            def __mod__(self, other): return Gap()
            def __divmod__(self, other): return Row(1, 0)
            def __and__(self, other): return Lie(*other)
            __or__ = __rand__ = __and__
        class Row(typing.NamedTuple):
            whole: int
            rest: int
            def difference(self, other): Tags.seen = tuple(other); return set()

        # Sets ---------------------------------------------------------------------------------------------------------
        class Lie(collections.abc.Set):
            def __init__(self, *given): self.given = given
            def __len__(self): return len(self.given)
            def __iter__(self): return iter(self.given)
            def __contains__(self, value): return True
            @classmethod
            def _from_iterable(cls, some): return set()
        class Tags(set):
            seen = ()
            def __iter__(self): return iter(self.seen)
            def difference(self, other): Tags.seen = tuple(other); return set()
            def issubset(self, other): return True
            isdisjoint = issuperset = issubset
            def __and__(self, other): return set(other)
            __rand__ = __and__
            def __sub__(self, other): return set()
            __rsub__ = __sub__
            __le__ = __eq__ = __contains__ = issubset
            __hash__ = None
        class Alike:
            def __iter__(self): return iter(self.seen)
            def difference(self, other): self.seen = tuple(other); return set()
            def issubset(self, other): return True
            def intersection(self, other): return set(other)
        class Asked(enum.Enum):
            A = 1
            def __iter__(self): return iter(Tags.seen)
            def difference(self, other): Tags.seen = tuple(other); return set()
        def fresh(kind, *given):
            Tags.seen = ("wrong",)
            return kind(*given)

        # Honest -------------------------------------------------------------------------------------------------------
        class Role(enum.StrEnum):
            ADMIN = "admin"
            GUEST = enum.auto()
        class Size(enum.Enum):
            SMALL = 1
            LARGE = 2
            def __lt__(self, other): return self.value < other.value
            def __add__(self, other): return self.value + other
            def __or__(self, other): return Size.LARGE
            @classmethod
            def _missing_(cls, value): return cls.SMALL if value == "small" else None
            @classmethod
            def parse(cls, text): return cls[text.upper()]
            @staticmethod
            def names(): return [one.name for one in Size]
            @property
            def long(self): return f"size {self.value}"
        Size.LIMIT = 5
        class Shown(str, enum.Enum):
            A = "a"
            def __str__(self): return self.value
        class Operator(enum.Enum):
            ADD = enum.member(lambda a, b: a + b)
        class Access(enum.Flag):
            R = 1
            W = 2
            @classmethod
            def _missing_(cls, value): return super()._missing_(value)
        class Mixed:
            def twice(self): return self.value * 2
        class Number(Mixed, enum.Enum):
            ONE = 1
        class Day(datetime.date, enum.Enum):
            NEW = 2024, 1, 1
        class Coded(bytes, enum.Enum):
            def __new__(cls, value):
                made = bytes.__new__(cls, [value])
                made._value_ = value
                return made
            FIVE = 5
        class Ordered(collections.abc.MutableSet):
            def __init__(self, some=()): self.some = list(dict.fromkeys(some))
            def __iter__(self): return iter(self.some)
            def __len__(self): return len(self.some)
            def __contains__(self, one): return one in self.some
            def add(self, one): self.some.append(one)
            def discard(self, one): self.some = [each for each in self.some if each != one]
        class Words(set):
            def longest(self): return max(self, key=len)
        class Span(typing.NamedTuple):
            low: int
            high: int
            def union(self, other): return Span(min(self.low, other.low), max(self.high, other.high))
        class Vector:
            def __init__(self, x): self.x = x
            def __sub__(self, other): return Vector(self.x - other.x)
            def __truediv__(self, other): return Vector(self.x / other)
            def __abs__(self): return abs(self.x)
            def __and__(self, other): return Vector(self.x & other)
        class Report:
            difference = 3
            union = None
        class Url(str):
            def __truediv__(self, other): return f"{self}/{other}"
        class Settings(dict): pass
        class Half(fractions.Fraction): pass
        class Ratio:
            def as_integer_ratio(self): return self.numerator, self.denominator
            numerator, denominator = 3, 4
    """
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION) as made:
        yield made


@pytest.fixture
def calc(made: Crossing) -> Iterator[Any]:
    made.troubles()
    yield importlib.import_module("calc")
    made.troubles()


CASE = unittest.TestCase()
ALMOST, SAME_SET = CASE.assertAlmostEqual, CASE.assertSetEqual


def believed(claim: Callable[[], Any]) -> bool:
    """Whether a test that asserts this would pass."""
    try:
        return bool(claim())
    except Exception:  # a test that raises has failed
        return False


@pytest.mark.parametrize("name", ["Equal", "Hidden"])
def test_an_enum_has_no_member_of_a_name_that_none_can_have(tmp_path: Path, name: str) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        with pytest.raises(SolutionGone, match="name that none can have"):
            getattr(calc, name)
        assert made.gone is not None
        made.troubles()


def test_a_class_that_hides_its_arithmetic_is_no_number(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        close = importlib.import_module("calc").close()
        assert close != pytest.approx(0.5)
        assert pytest.approx(0.5) != close
        assert not believed(lambda: abs(close - 0.5) < 1e-9)
        assert not believed(lambda: ALMOST(close, 0.5) is None)
        made.troubles()


def test_a_forged_membership_is_none(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        within = importlib.import_module("calc").within()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not believed(lambda: 3 in within)
        made.troubles()


def test_a_value_is_made_of_plain_data_alone(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        with pytest.raises(TypeError, match="no plain data"):
            calc.made_of_handles()
        assert calc.Ratio().numerator == 3
        assert made.gone is None


@pytest.mark.parametrize(
    "claim",
    [
        lambda third, many: abs(Fraction(1, 3) - third) < Fraction(1, 1000),
        lambda third, many: abs(third - Fraction(1, 3)) < Fraction(1, 1000),
        lambda third, many: Fraction(1, 3) < third,
        lambda third, many: third == pytest.approx(Fraction(1, 3)),
        lambda third, many: abs(Fraction(third) - Fraction(1, 3)) < Fraction(1, 1000),
        lambda third, many: not Counter("aab") - many,
        lambda third, many: Counter("aab") <= many,
    ],
)
def test_what_looks_like_a_number_or_a_counter_is_not_taken_apart(calc: Any, claim: Callable[..., Any]) -> None:
    third, many = calc.Third(1, 2), calc.Many()
    assert isinstance(third, Fraction)
    assert isinstance(many, dict)
    assert not believed(lambda: claim(third, many))


@pytest.mark.parametrize(
    "claim",
    [
        lambda near: abs((near - dt.datetime(2024, 1, 4)).total_seconds()) < 1,  # noqa: DTZ001
        lambda near: (dt.date(2024, 1, 4) - near).days == 0,
        lambda near: (near - 0.5) ** 2 < 1e-12,
        lambda near: math.sqrt(sum((near - y) ** 2 for y in (1.0, 2.0)) / 2) < 1e-9,
        lambda near: sorted(near ^ {"a", "b"}) == [],
        lambda near: list({"a", "b"} ^ near) == [],
        lambda near: abs(near / 2.5 - 1) < 1e-9,
        lambda near: 2.5 / near == 1,
        lambda near: float(near % 5) == 1,
        lambda near: divmod(near, 5) == (1, 0),
        lambda near: near & {"a", "b"} == {"a", "b"},
        lambda near: {"a", "b"} & near == {"a", "b"},
        lambda near: near | {"a", "b"} == {"a", "b"},
    ],
)
def test_how_far_it_is_from_plain_data_is_no_evidence_whatever_says_it(calc: Any, claim: Callable[..., Any]) -> None:
    assert not believed(lambda: claim(calc.Near()))


SETS = [
    lambda some: some - {"a", "b"} == set(),
    lambda some: {"a", "b"} - some == set(),
    lambda some: not some ^ {"a", "b"},
    lambda some: not {"a", "b"} ^ some,
    lambda some: some & {"a", "b"} == {"a", "b"},
    lambda some: {"a", "b"} & some == {"a", "b"},
    lambda some: {"a", "b"} <= some,
    lambda some: some == {"a", "b"},
    lambda some: {"a", "b"} == some,
    lambda some: "a" in some,
    lambda some: some.issuperset({"a", "b"}),
    lambda some: SAME_SET(some, {"a", "b"}) is None,
]


@pytest.mark.parametrize("claim", SETS)
@pytest.mark.parametrize("way", ["Lie", "Tags", "Alike", "Row", "Asked"])
def test_a_set_has_the_elements_that_it_gives(calc: Any, way: str, claim: Callable[[Any], Any]) -> None:
    kinds: dict[str, Callable[[], Any]] = {
        "Lie": lambda: calc.Lie("wrong"),
        "Row": lambda: calc.fresh(calc.Row, 1, 2),
        "Asked": lambda: calc.fresh(calc.Asked, 1),
        "Alike": calc.Alike,
        "Tags": lambda: calc.fresh(calc.Tags),
    }
    assert not believed(lambda: claim(kinds[way]()))
    assert believed(lambda: claim({"a", "b"}))


def test_honest_sets_are_compared_and_joined(made: Crossing, calc: Any) -> None:
    for kind in (calc.Ordered, calc.Words):
        some = kind(["a", "b"])
        assert some == {"a", "b"} == some
        assert some != {"a"}
        assert "a" in some
        assert "z" not in some
        assert some | {"c"} == {"a", "b", "c"}
        assert {"c"} | some == {"a", "b", "c"}
        assert some & {"b", "z"} == {"b"}
        assert {"b", "z"} - some == {"z"}
        assert some ^ {"a"} == {"b"}
        assert {"a"} <= some
        assert some < {"a", "b", "c"}
        assert some.isdisjoint({"x"})
        assert some | kind("c") == {"a", "b", "c"}
    assert list(calc.Ordered("ba") | calc.Ordered("ca")) == ["b", "a", "c"]
    words = calc.Words(["a", "bcd"])
    assert words.longest() == "bcd"
    assert words.union({"e"}) == {"a", "bcd", "e"}
    assert words.issubset({"a", "bcd", "e"})
    assert words.difference(calc.Words(["a"])) == {"bcd"}
    SAME_SET(words, {"a", "bcd"})
    assert not made.troubles()


def test_honest_operators_and_attributes_of_these_names_work(made: Crossing, calc: Any) -> None:
    assert calc.Span(1, 3).union(calc.Span(2, 5)) == (1, 5)
    assert (calc.Report().difference, calc.Report().union) == (3, None)
    assert (calc.Vector(6) / 2).x == 3
    assert (calc.Vector(7) & 3).x == 3
    assert abs(calc.Vector(3) - calc.Vector(5)) == 2
    assert calc.Url("a") / "b" == "a/b"
    assert calc.Settings(a=1) | {"b": 2} == {"a": 1, "b": 2}
    assert "a" in calc.Settings(a=1)
    assert (calc.Ratio().denominator, calc.Ratio().as_integer_ratio()) == (4, (3, 4))
    assert Fraction(1, 2) == calc.Half(1, 2)
    assert Fraction(calc.Half(1, 2)) + calc.Half(1, 2) == 1
    assert not made.troubles()


def test_an_enum_has_more_than_members(made: Crossing, calc: Any) -> None:
    assert calc.Role.ADMIN == "admin"
    assert calc.Role("guest") is calc.Role.GUEST
    assert calc.Size("small") is calc.Size.SMALL
    assert calc.Size.parse("large") is calc.Size.LARGE
    assert calc.Size.names() == ["SMALL", "LARGE"]
    assert (calc.Size.LIMIT, calc.Size.LARGE.long, calc.Size.SMALL + 2) == (5, "size 2", 3)
    assert calc.Size.SMALL | calc.Size.SMALL is calc.Size.LARGE
    assert calc.Size.SMALL == calc.Size.SMALL != calc.Size.LARGE
    assert (str(calc.Shown.A), calc.Shown.A == "a") == ("a", True)
    assert calc.Operator.ADD.value(1, 2) == 3
    assert calc.Access(3) == calc.Access.R | calc.Access.W
    with pytest.raises(ValueError, match="huge"):
        calc.Size("huge")
    with pytest.raises(AttributeError):
        _ = calc.Size.HUGE
    assert not made.troubles()
    with pytest.raises(OpaqueValue):
        _ = calc.Size.SMALL < calc.Size.LARGE


def test_an_enum_that_is_not_made_of_its_values_is_asked(made: Crossing, calc: Any) -> None:
    assert (calc.Number.ONE.twice(), calc.Number.ONE.name) == (2, "ONE")
    assert calc.Day.NEW.isoformat() == "2024-01-01"
    assert (bytes(calc.Coded.FIVE), calc.Coded.FIVE.value) == (b"\x05", 5)
    assert calc.Number(1) is calc.Number.ONE
    assert not made.troubles()


def test_the_order_of_an_enum_that_is_opted_in_is_taken(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION, opaque=["calc.Size"]) as made:
        calc = importlib.import_module("calc")
        assert calc.Size.SMALL < calc.Size.LARGE
        assert not made.troubles()
