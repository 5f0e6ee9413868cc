from __future__ import annotations

import collections.abc
import dataclasses
import functools
import importlib
import inspect
import operator
import sys
import types
import unittest.mock
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc/__init__.py": '''
        """Sums."""
        import abc, contextlib, dataclasses, enum, functools, sys, typing, warnings
        from calc.core import *
        __version__ = "1.2"
        RATES = {"a": 1.5}

        def add(a, b=2, *rest, scale: int = 1, **named) -> int:
            """The sum."""
            return (a + b + sum(rest) + sum(named.values())) * scale

        def apply(function, *args, **options):
            return function(*args, **options)

        def name_of(function):
            return function.__name__, function.__doc__

        class CalcError(ValueError):
            def __init__(self, code, text="bad"):
                super().__init__(text)
                self.code = code

            @property
            def doubled(self):
                return self.code * 2

        class Deeper(CalcError):
            pass

        def fail(kind="own"):
            if kind == "own":
                error = Deeper(7, "no sum")
                error.add_note("seen")
                raise error from KeyError("k")
            if kind == "json":
                import json
                json.loads("{")
            if kind == "os":
                open("/nowhere/at/all")
            if kind == "unicode":
                b"\\xff".decode()
            raise getattr(__import__("builtins"), kind)("text", 2)

        class Account:
            """Money."""
            rate = 0.5

            def __init__(self, balance=0):
                self.balance = balance

            def deposit(self, amount):
                self.balance += amount
                return self

            @classmethod
            def of(cls, text):
                return cls(int(text))

            @staticmethod
            def valid(amount):
                return amount > 0

            @property
            def doubled(self):
                return self.balance * 2

            def __getitem__(self, key):
                return self.balance + key

            def __setitem__(self, key, value):
                self.balance = value

            def __add__(self, other):
                return type(self)(self.balance + getattr(other, "balance", other))

            def __call__(self, times):
                return self.balance * times

            def __iter__(self):
                yield from range(self.balance)

            def __len__(self):
                return self.balance

            def __enter__(self):
                return self

            def __exit__(self, *error):
                self.balance = -1

        class Savings(Account):
            def deposit(self, amount):
                return super().deposit(amount * 2)

        class Shape(abc.ABC):
            @abc.abstractmethod
            def area(self): ...
            def doubled(self): return self.area() * 2

        @dataclasses.dataclass(order=True)
        class Point:
            x: int
            y: int = 0

            def far(self):
                return self.x + self.y

        @dataclasses.dataclass(frozen=True)
        class Fixed:
            tags: tuple

        class Pair(typing.NamedTuple):
            left: int
            right: int = 5

            def total(self):
                return self.left + self.right

        class Color(enum.Enum):
            RED = 1
            GREEN = "g"

            def loud(self):
                return self.name + "!"

        class Level(enum.IntEnum):
            LOW = 1
            HIGH = 2

        class Flag(enum.Flag):
            A = 1
            B = 2

        def swap(pair):
            return Pair(pair.right, pair.left)

        def color(value):
            return Color(value)

        def kinds(value):
            return type(value).__name__

        def count(n):
            for at in range(n):
                sent = yield at
                if sent:
                    yield sent

        @contextlib.contextmanager
        def opened(log):
            log.append("in")
            yield "inside"
            log.append("out")

        def loud(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args).upper()
            return wrapper

        @functools.lru_cache
        def cached(x):
            return x

        def show(text):
            print(text)
            print("err", file=sys.stderr)

        def ask():
            return input("name? ") + sys.stdin.readline()

        def old():
            warnings.warn("old", DeprecationWarning)

        async def fetch():
            return 1

        class Registry(dict):
            pass

        def walk(node):
            while node is not None:
                yield node.value
                node = node.next

        def link(node, other):
            node.next = other

        def helper():
            return "real"

        def through():
            return helper()

        def pooled(function, items):
            import concurrent.futures
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                return list(pool.map(function, items))
    ''',
    "calc/core.py": """
        __all__ = ["core_value"]
        core_value = 11
        hidden = 12
    """,
    "calc/__main__.py": """
        import sys
        print("program", sys.argv[1:], sys.stdin.read())
        sys.exit(3)
    """,
    "calc/broken.py": "1 / 0\n",
}


@pytest.fixture(scope="module")
def calc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION) as made:
        module = importlib.import_module("calc")
        yield module
        assert made.gone is None


def test_a_function_is_called_with_all_kinds_of_arguments(calc: Any) -> None:
    assert calc.add(1) == 3
    assert calc.add(1, 2, 3, scale=2, other=4) == 20
    with pytest.raises(TypeError, match="missing 1 required positional"):
        calc.add()


def test_modules_constants_and_submodules_are_imported(calc: Any) -> None:
    core = importlib.import_module("calc.core")
    namespace: dict[str, Any] = {}
    exec("from calc.core import *\nfrom calc import core as c, add, __version__ as v", namespace)
    assert (namespace["core_value"], namespace["v"], namespace["c"]) == (11, "1.2", core)
    assert core.hidden == calc.core.hidden == 12
    assert calc.RATES == {"a": 1.5}
    assert calc.__doc__ == "Sums."
    with pytest.raises(ModuleNotFoundError, match=r"calc\.missing"):
        importlib.import_module("calc.missing")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("calc.broken")
    with pytest.raises(AttributeError):
        _ = calc.missing
    assert not hasattr(calc, "missing")


def test_exceptions_match_by_class_and_carry_what_they_hold(calc: Any) -> None:
    with pytest.raises(calc.CalcError, match="no sum") as own:
        calc.fail()
    assert type(own.value) is calc.Deeper
    assert issubclass(type(own.value), ValueError)
    assert (own.value.code, own.value.doubled, own.value.args) == (7, 14, ("no sum",))
    assert own.value.__notes__ == ["seen"]
    assert type(own.value.__cause__) is KeyError
    for kind in (ValueError, KeyError, ZeroDivisionError, StopIteration, RecursionError):
        with pytest.raises(kind) as raised:
            calc.fail(kind.__name__)
        assert type(raised.value) is kind
        assert raised.value.args == ("text", 2)


def test_a_standard_error_has_its_attributes(calc: Any) -> None:
    import json

    with pytest.raises(json.JSONDecodeError) as decode:
        calc.fail("json")
    assert (decode.value.pos, decode.value.lineno) == (1, 1)
    with pytest.raises(FileNotFoundError) as missing:
        calc.fail("os")
    assert missing.value.filename == "/nowhere/at/all"
    with pytest.raises(UnicodeDecodeError) as text:
        calc.fail("unicode")
    assert text.value.start == 0


def test_an_error_of_the_solution_can_be_made_and_raised_by_the_test(calc: Any) -> None:
    def fails() -> None:
        raise calc.CalcError(3, "made here")

    with pytest.raises(calc.CalcError, match="made here") as raised:
        calc.apply(fails)
    assert raised.value.code == 3


def test_an_error_of_a_callback_comes_home_itself(calc: Any) -> None:
    class Mine(LookupError):
        pass

    mine = Mine("a")

    def fails() -> None:
        raise mine

    with pytest.raises(Mine) as raised:
        calc.apply(fails)
    assert raised.value is mine


def test_objects_keep_their_state_over_there(calc: Any) -> None:
    account = calc.Account(5)
    assert account.deposit(3) is account
    assert (account.balance, account.doubled, account.rate) == (8, 16, 0.5)
    account.balance = 1
    account[0] = 4
    assert (account[2], account(3), len(account), list(account)) == (6, 12, 4, [0, 1, 2, 3])
    assert (account + 1).balance == 5
    assert (account + account).balance == 8
    assert isinstance(account, calc.Account)
    assert type(calc.Savings(1)) is calc.Savings
    assert issubclass(calc.Savings, calc.Account)
    assert calc.Savings(1).deposit(2).balance == 5
    assert calc.Account.deposit(calc.Savings(1), 2).balance == 3
    assert (calc.Account.of("3").balance, calc.Account.valid(1), calc.Account.rate) == (3, True, 0.5)
    assert calc.Account.__name__ == "Account"
    assert calc.Account.__doc__ == "Money."
    with pytest.raises(AttributeError):
        _ = account.missing
    with account as inside:
        assert inside is account
    assert account.balance == -1
    with pytest.raises(TypeError):
        _ = account - 1


def test_a_class_of_the_tests_inherits_from_the_solutions(calc: Any) -> None:
    class Child(calc.Account):  # type: ignore[misc]
        limit = 3

        def __init__(self, balance: int, note: str = "n") -> None:
            super().__init__(balance + 1)
            self.note = note

        def deposit(self, amount: int) -> Any:
            return super().deposit(amount * 10)

        @classmethod
        def of(cls, text: str) -> Any:
            return super().of(text + "0")

        @property
        def tripled(self) -> int:
            return int(self.balance) * 3

        def __str__(self) -> str:
            return f"child {self.note} of {len(super().__repr__()) > 9}"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Child) and bool(self.balance == other.balance)

        __hash__ = None  # type: ignore[assignment]

    child = Child(1)
    assert (child.balance, child.note, child.limit, child.rate, child.tripled) == (2, "n", 3, 0.5, 6)
    assert child.deposit(1) is child
    assert child.balance == 12
    assert type(child) is Child
    assert isinstance(child, calc.Account)
    assert calc.kinds(child) == "Child"
    assert calc.apply(str, child) == str(child) == "child n of True"
    assert Child.of("1").balance == 11
    assert child == calc.apply(Child, 11)
    assert child != Child(3)
    assert (child + 1).balance == 14

    class Error(calc.CalcError):  # type: ignore[misc]
        pass

    def fails() -> None:
        raise Error(4)

    with pytest.raises(calc.CalcError) as raised:
        calc.apply(fails)
    assert type(raised.value) is Error
    assert raised.value.doubled == 8


def test_an_abstract_class_is_filled_in_by_the_tests(calc: Any) -> None:
    class Half(calc.Shape):  # type: ignore[misc]
        pass

    class Whole(Half):
        def area(self) -> int:
            return 4

    with pytest.raises(TypeError, match="abstract"):
        calc.Shape()
    with pytest.raises(TypeError, match="abstract"):
        Half()
    assert Whole().doubled() == 8


def test_the_classes_data_is_seen_as_it_changes(calc: Any) -> None:
    calc.Account.rate = 0.75
    try:
        assert calc.Account(1).rate == 0.75
    finally:
        calc.Account.rate = 0.5
    assert calc.Account.rate == 0.5


def test_dataclasses_compare_by_their_fields(calc: Any) -> None:
    point = calc.Point(1, y=2)
    assert point == calc.Point(1, 2)
    assert point != calc.Point(1, 3)
    assert calc.Point(1) < calc.Point(2)
    assert point != (1, 2)
    assert dataclasses.asdict(point) == {"x": 1, "y": 2}
    assert [field.name for field in dataclasses.fields(calc.Point)] == ["x", "y"]
    assert dataclasses.replace(point, y=5).far() == 6
    assert repr(point) == "Point(x=1, y=2)"
    point.x = 9
    assert point.far() == 11
    assert {calc.Fixed((1,)): "v"}[calc.Fixed((1,))] == "v"
    with pytest.raises(TypeError, match="unhashable"):
        hash(point)
    with pytest.raises(dataclasses.FrozenInstanceError):
        calc.Fixed(()).tags = 1
    match point:
        case calc.Point(9, y):
            assert y == 2
        case _:
            raise AssertionError


def test_named_tuples_and_enums_are_whole(calc: Any) -> None:
    pair = calc.Pair(1)
    assert pair == (1, 5) == tuple(pair)
    assert isinstance(pair, tuple)
    assert isinstance(pair, calc.Pair)
    assert calc.swap(pair) == calc.Pair(5, 1)
    assert (pair.left, pair.total(), pair._asdict()) == (1, 6, {"left": 1, "right": 5})
    assert pair._replace(left=2).total() == 7
    assert calc.color(1) is calc.Color.RED is calc.Color(1) is calc.Color["RED"]
    assert [member.name for member in calc.Color] == ["RED", "GREEN"]
    assert calc.Color.RED.loud() == "RED!"
    assert calc.kinds(calc.Color.GREEN) == "Color"
    assert calc.Level.HIGH > calc.Level.LOW
    assert calc.Level.HIGH == 2
    assert calc.apply(operator.or_, calc.Flag.A, calc.Flag.B) == calc.Flag.A | calc.Flag.B
    with pytest.raises(ValueError, match="not a valid Color"):
        calc.Color(9)


def test_generators_are_lazy_and_iterators_go_both_ways(calc: Any) -> None:
    numbers = calc.count(10**12)
    assert (next(numbers), next(numbers)) == (0, 1)
    assert numbers.send("x") == "x"
    assert isinstance(numbers, collections.abc.Iterator)
    assert isinstance(numbers, types.GeneratorType)
    numbers.close()
    assert list(numbers) == []
    taken: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            taken.append(1)
            yield len(taken)

    assert calc.apply(next, endless()) == 1
    assert list(calc.apply(map, str, iter([1, 2]))) == ["1", "2"]
    assert taken == [1]


def test_callbacks_are_called_back_and_nest(calc: Any) -> None:
    def fall(n: int) -> int:
        return 0 if n == 0 else 1 + calc.apply(fall, n - 1)

    assert calc.apply(fall, 10) == 10
    assert calc.apply(lambda *a, **k: (a, k), 1, x=2) == ((1,), {"x": 2})
    assert calc.apply("a-b".split, "-") == ["a", "b"]
    assert calc.apply(functools.partial(max, 3), 9) == 9
    assert calc.apply(operator.itemgetter(1), "xyz") == "y"
    out: list[int] = []
    calc.apply(out.append, 4)
    assert out == [4]
    called = unittest.mock.Mock(return_value=5)
    assert calc.apply(called, 1, b=2) == 5
    called.assert_called_once_with(1, b=2)
    assert calc.name_of(fall) == ("fall", None)
    assert calc.apply(calc.add, 1, 1) == 2


def test_decorators_and_context_managers_work(calc: Any) -> None:
    @calc.loud  # type: ignore[untyped-decorator]
    def greet(name: str) -> str:
        """Hello."""
        return "hi " + name

    assert greet("x") == "HI X"
    assert (greet.__name__, greet.__doc__) == ("greet", "Hello.")
    log: list[str] = []
    with calc.opened(log) as inside:
        assert (inside, log) == ("inside", ["in"])
    assert log == ["in", "out"]
    with pytest.raises(KeyError), calc.opened(log):
        raise KeyError("through")
    assert calc.cached(3) == calc.cached(3) == 3
    assert calc.cached.cache_info().hits >= 1


def test_an_object_of_the_tests_is_used_by_the_solution(calc: Any) -> None:
    class Node:
        def __init__(self, value: int, after: Any = None) -> None:
            self.value, self.next = value, after

    nodes = Node(1, Node(2, None))
    assert list(calc.walk(nodes)) == [1, 2]
    other = Node(5)
    calc.link(nodes, other)
    assert nodes.next is other
    assert calc.kinds(nodes) == "Node"


def test_what_is_printed_asked_and_warned_of_is_the_tests(
    calc: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calc.show("héllo")
    assert capsys.readouterr() == ("héllo\n", "err\n")
    monkeypatch.setattr("builtins.input", lambda prompt: prompt + "Ann")
    with monkeypatch.context() as patch:
        import io

        patch.setattr("sys.stdin", io.StringIO("line\nmore"))
        assert calc.ask() == "name? Annline\n"
    with pytest.warns(DeprecationWarning, match="old"):
        calc.old()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning):
            calc.old()


def test_the_solution_can_be_patched(calc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(calc, "helper", lambda: "fake")
        assert calc.through() == "fake"
        patch.setattr(calc.Account, "deposit", lambda self, amount: self.balance + amount)
        assert calc.Account(1).deposit(1) == 2
        patch.setattr(calc.Account, "of", staticmethod(lambda text: text * 2))
        assert calc.Account.of("a") == "aa"
    assert calc.through() == "real"
    assert calc.Account(1).deposit(1).balance == 2
    assert calc.Account.of("4").balance == 4


def test_threads_of_the_solution_call_back(calc: Any) -> None:
    assert calc.pooled(lambda n: calc.add(n, n), list(range(50))) == [2 * n for n in range(50)]


def test_signatures_are_told(calc: Any) -> None:
    assert str(inspect.signature(calc.add)) == "(a, b=2, *rest, scale: int = 1, **named) -> int"
    assert list(inspect.signature(calc.Account).parameters) == ["balance"]
    assert list(inspect.signature(calc.Account(1).deposit).parameters) == ["amount"]
    assert calc.add.__doc__ == "The sum."


def test_a_class_built_on_dict_is_one_for_isinstance_and_no_empty_dict(calc: Any) -> None:
    registry = calc.Registry(a=1)
    assert isinstance(registry, dict)
    assert isinstance(registry, calc.Registry)
    assert (registry["a"], list(registry), sorted(registry.items())) == (1, ["a"], [("a", 1)])
    assert dict(registry) == {"a": 1}


def test_arrays_go_both_ways(calc: Any) -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert calc.apply(np.sum, array) == 15.0
    assert np.array_equal(calc.apply(np.transpose, array), array.T)


def test_the_solution_runs_as_a_program(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        done = made.run(["calc", "-v", "x"], input="text")
        assert (done.returncode, done.stdout) == (3, "program ['-v', 'x'] text\n")
        assert made.run(["missing"]).returncode == 1


def test_a_reload_runs_the_module_again(tmp_path: Path) -> None:
    files = {"calc.py": "import os\nseen = globals().get('seen', 0) + 1\n"}
    with crossing(tmp_path, files):
        calc = importlib.import_module("calc")
        assert calc.seen == 1
        assert importlib.reload(calc).seen == 2
        del sys.modules["calc"]
        assert importlib.import_module("calc").seen == 1
