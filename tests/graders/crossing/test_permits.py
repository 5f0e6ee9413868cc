"""What the solution's side may ask of the tests' side, and what it is told of numbers, sets and mappings."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hudsim.graders.crossing.errors import CannotCross, OpaqueValue, SolutionGone
from hudsim.graders.crossing.names import untouchable
from hudsim.graders.crossing.tests_side import Crossing
from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc.py": """
        import collections.abc, copy, dataclasses, gc, json, numbers, sys

        def ask(what, *operands):
            return next(one for one in gc.get_objects() if type(one).__name__ == "Peer").ask(what, *operands)
        def bound(value): return ask("bound", type(value), "__class__", sys.modules["calc"], None)
        def copied(value): return copy.deepcopy([value])
        def made(value, *args): return type(value)(*args)
        def made_by_a_dunder(value, name, *args): return ask("dunder", type(value), name, args)
        def called(kind, *args): return kind(*args)
        def by_another_way(way, archive, same):
            if way == "fields":
                return ask("fields", archive, ("open",))[0]
            def mark(): pass
            peer = next(one for one in gc.get_objects() if type(one).__name__ == "Peer")
            peer.objects.mirrors.originals[id(mark)] = (archive if way == "object" else type(archive), "open")
            return same(mark)
        def asked(value, name, *args): return getattr(value, name)(*args)
        def fetched(value, name): return getattr(value, name)
        def by_field(value, name): return ask("fields", value, (name,))
        def put(value, name, new): setattr(value, name, new)
        def used(client):
            found = client.get("url", timeout=5).json()
            with client as opened: return found, opened.size
        def as_dict(value): return dataclasses.asdict(value)
        def field_names(value): return [field.name for field in dataclasses.fields(value)]
        def state(value): return vars(value)
        def dumped(values): return json.dumps(values, default=vars)
        def opened(archive, path): return archive.open(path)
        def by_method(value, name, *args): return ask("method", type(value), value, name, args, {})
        def named(value): return type(value).__name__, isinstance(value, type(value)), type(value).label
        def echoed(value): return type(value)

        class Close(collections.abc.Mapping, numbers.Complex):
            def __rsub__(self, other): return 0.0
            __sub__ = __isub__ = __rsub__
            def __xor__(self, other): return set()
            __rxor__ = __xor__
        Close.__abstractmethods__ = frozenset()
        class Zero:
            def __abs__(self): return 0.0
        class Far(Close):
            def __sub__(self, other): return Zero()
        class Half(numbers.Number):
            def __add__(self, other): return 0.5 + other
        class Vector:
            def __init__(self, x): self.x = x
            def __sub__(self, other): return Vector(self.x - getattr(other, "x", other))
            def __mul__(self, other): return Vector(self.x * other)
        class Lie(collections.abc.Set):
            def __init__(self, *given): self.given = given
            def __len__(self): return 2
            def __iter__(self): return iter(self.given)
            def __contains__(self, value): return True
        class Anything(collections.abc.Mapping):
            def __init__(self, **given): self.given = given
            def __len__(self): return 2
            def __iter__(self): return iter(self.given)
            def __getitem__(self, key): return self.given.get(key)
    """
}


class Point:
    label = "point"

    def __init__(self, x: int = 0) -> None:
        self.x = x


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION) as made:
        yield made


@pytest.fixture
def calc(made: Crossing) -> Iterator[Any]:
    made.troubles()
    yield importlib.import_module("calc")
    made.troubles()


def test_nothing_is_bound_or_copied_for_the_solution_and_the_test_goes_on(made: Crossing, calc: Any) -> None:
    with pytest.raises(CannotCross):
        calc.bound(iter([1]))
    with pytest.raises(CannotCross) as copied:
        calc.copied(Point())
    assert copied.value.reason == "copy"
    assert made.troubles()
    assert calc.called(len, "abc") == 3
    assert copy.deepcopy(Point(3)).x == 3


def test_a_class_that_only_describes_an_object_is_not_called(calc: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    with (tmp_path / "secret").open() as file:
        for what in (file, file.buffer, file.buffer.raw):  # type: ignore[attr-defined]
            with pytest.raises(CannotCross):
                calc.made(what, str(tmp_path / "secret"))
            with pytest.raises(CannotCross):
                calc.made_by_a_dunder(what, "__call__", str(tmp_path / "secret"))
    with pytest.raises(CannotCross):
        calc.made(Point(), 3)


def test_a_class_that_a_test_hands_over_is_called_also_after_an_object_of_it(calc: Any) -> None:
    assert calc.named(Point()) == ("Point", True, "point")
    assert calc.echoed(Point()) is Point
    assert calc.called(Point, 4).x == 4


@pytest.mark.parametrize("way", ["fields", "object", "class"])
def test_no_other_way_than_get_leads_to_what_get_refuses(tmp_path: Path, way: str) -> None:
    with tarfile.open(tmp_path / "made.tar", "w") as archive, crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        with pytest.raises((CannotCross, AttributeError, SolutionGone)):
            calc.by_another_way(way, archive, lambda found: found)
        made.troubles()


def test_an_archive_or_a_parser_opens_no_other_file_for_the_solution(calc: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive, zipfile.ZipFile(io.BytesIO(), "w") as other:
        for of, name in ((archive, "add"), (archive, "extractall"), (other, "write"), (ConfigParser(), "read")):
            for way in (calc.asked, calc.by_method):
                with pytest.raises(CannotCross):
                    way(of, name, str(tmp_path / "secret"))
        assert calc.asked(archive, "getnames") == []
        calc.asked(other, "writestr", "a", "text")
        assert calc.asked(other, "read", "a") == b"text"


class Spy:
    kind = "spy"
    sent = None

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.line = mock.Mock()

    def send(self, *args: Any) -> None:
        self.calls.append(args)

    def was_sent(self, *args: Any) -> bool:
        return args in self.calls

    @functools.cached_property
    def last(self) -> Any:
        return self.calls[-1]

    @property
    def count(self) -> int:
        return len(self.calls)

    @count.setter
    def count(self, value: int) -> None:
        del self.calls[value:]


@pytest.mark.parametrize("name", ["was_sent", "last", "line"])
def test_what_a_test_asks_its_own_spy_is_not_replaced(calc: Any, name: str) -> None:
    spy = Spy()
    with pytest.raises(CannotCross):
        calc.put(spy, name, "yes")
    assert not spy.was_sent("x")
    calc.asked(spy, "send", 3)
    assert spy.was_sent(3)


def test_the_state_of_a_tests_object_is_set(made: Crossing, calc: Any) -> None:
    spy = Spy()
    for name, value in (("kind", "other"), ("sent", True), ("new", [1]), ("count", 0)):
        calc.put(spy, name, value)
        assert getattr(spy, name) == value
    assert not made.troubles()


MOCKS: list[Callable[[], Any]] = [
    mock.Mock,
    mock.MagicMock,
    mock.AsyncMock,
    lambda: mock.create_autospec(Spy, instance=True),
    lambda: mock.create_autospec(len),
    lambda: mock.create_autospec(lambda x: x),
]


@pytest.mark.parametrize("make", MOCKS)
@pytest.mark.parametrize(
    "word",
    ["configure_mock", "assert_called_once_with", "reset_mock", "side_effect", "call_args", "called", "mock_calls"],
)
def test_a_mock_says_nothing_of_itself_to_the_solution(calc: Any, make: Callable[[], Any], word: str) -> None:
    for way in (calc.fetched, calc.by_method, calc.by_field):
        with pytest.raises((CannotCross, AttributeError)):
            way(make(), word)
    with pytest.raises(CannotCross):
        calc.put(make(), word, None)


def test_a_mock_is_called_and_has_children(made: Crossing, calc: Any) -> None:
    client = mock.MagicMock()
    client.get.return_value.json.return_value = {"a": 1}
    client.__enter__.return_value.size = 3
    assert calc.used(client) == ({"a": 1}, 3)
    client.get.assert_called_once_with("url", timeout=5)
    function = mock.create_autospec(lambda x: x, return_value=7)
    assert calc.called(function, 2) == 7
    function.assert_called_once_with(2)
    assert not made.troubles()


@dataclasses.dataclass
class Item:
    name: str
    _seen: int = 0

    def __post_init__(self) -> None:
        self._more = 1


def test_the_fields_of_a_tests_dataclass_and_its_public_state_are_given(made: Crossing, calc: Any) -> None:
    assert calc.as_dict(Item("a")) == {"name": "a", "_seen": 0}
    assert calc.field_names(Item("a")) == ["name", "_seen"]
    assert calc.state(Item("a")) == {"name": "a", "_seen": 0}
    assert calc.state(Point(3)) == {"x": 3}
    assert calc.dumped([Point(3)]) == '[{"x": 3}]'
    assert not made.troubles()
    for other in (Item, io.StringIO(), mock.Mock(), len):
        with pytest.raises(CannotCross):
            calc.ask("get", other, "__dict__")
    with pytest.raises(CannotCross):
        calc.fetched(Item("a"), "_more")


def test_no_class_of_the_standard_library_makes_objects_by_its_methods(calc: Any, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "made.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
        with pytest.raises((CannotCross, AttributeError)):
            calc.opened(archive, str(tmp_path / "made.tar"))
        with pytest.raises(CannotCross):
            calc.by_method(archive, "open", str(tmp_path / "made.tar"))


def test_the_crossing_itself_is_never_lent(made: Crossing, calc: Any) -> None:
    assert untouchable(made.peer) == "object"
    with pytest.raises(CannotCross):
        calc.called(lambda: made.peer)
    with pytest.raises(CannotCross):
        calc.called(lambda: made)


@pytest.mark.parametrize("name", ["Close", "Far"])
def test_a_difference_from_plain_data_is_no_evidence(calc: Any, name: str) -> None:
    close = getattr(calc, name)()
    assert close != pytest.approx(3.0)
    assert pytest.approx(3.0) != close
    verdicts: list[Callable[[], Any]] = [
        lambda: abs(close - 2.5) < 1e-9,
        lambda: abs(2.5 - close) < 1e-9,
        lambda: round(close - 2.5, 6) == 0,
        lambda: close ^ {1} == set(),
        lambda: {1} ^ close == set(),
    ]
    for told in verdicts:
        with pytest.raises(OpaqueValue):
            told()


def test_other_arithmetic_is_by_call(made: Crossing, calc: Any) -> None:
    assert (calc.Vector(3) - calc.Vector(1)).x == 2
    assert (calc.Vector(3) * 2).x == 6
    assert calc.Half() + 1 == 1.5
    assert not made.troubles()


def test_an_opted_in_class_has_its_differences_taken(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION, opaque=["calc.Close"]):
        assert importlib.import_module("calc").Close() - 3 == 0.0


def test_a_set_is_compared_by_its_elements(made: Crossing, calc: Any) -> None:
    for lie in (calc.Lie(), calc.Lie(1, 3)):
        assert lie != {1, 2}
        assert {1, 2} != lie
        assert not lie >= {1, 2}
    assert calc.Lie(2, 1) == {1, 2}
    assert {1, 2} == calc.Lie(2, 1)
    assert calc.Lie(1) < {1, 2}
    assert calc.Lie(1, 2) == calc.Lie(2, 1)
    assert not made.troubles()


def test_a_mapping_has_the_keys_that_it_gives(made: Crossing, calc: Any) -> None:
    assert "a" not in calc.Anything()
    assert calc.Anything().keys() != {"a", "b"}
    assert calc.Anything().items() != {("a", None), ("b", None)}
    right = calc.Anything(a=1)
    assert "a" in right
    assert right == {"a": 1}
    assert right.keys() == {"a"}
    assert list(right.items()) == [("a", 1)]
    assert not made.troubles()


def test_what_a_reference_to_an_attribute_yields_is_as_forbidden_as_the_attribute(made: Crossing) -> None:
    objects, side = made.peer.objects, made.peer._side
    generator: Any = (n for n in range(3))

    class Asked:
        def value(self) -> Any:
            return generator, "gi_frame"

        def attempt(self, do: Any) -> Any:
            return do()

    objects._lend(generator)
    assert side.forbids(generator.gi_frame) is not None
    with pytest.raises(Exception, match="never lent"):
        objects._read_original(Asked())  # type: ignore[arg-type]
