from __future__ import annotations

import copy
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hudsim.graders.crossing.errors import CannotCross, OpaqueValue, explain
from hudsim.graders.crossing.tests_side import Crossing
from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc.py": """
        import typing

        class Yes:
            def __eq__(self, other): return True
            def __ne__(self, other): return True
            def __lt__(self, other): return True
            __le__ = __gt__ = __ge__ = __lt__
            def __bool__(self): return True
            def __contains__(self, item): return True
            def __hash__(self): return 0
            def __len__(self): return 3
            def __iter__(self): return iter(())
            def __getattr__(self, name): return self
            def __call__(self, *args, **options): return self
            def __instancecheck__(self, other): return True
            def __enter__(self): return self
            def __exit__(self, *error): return True

        class Money(Yes):
            def __init__(self, cents): self.cents = cents
            def __eq__(self, other): return self.cents == getattr(other, "cents", other)
            def __lt__(self, other): return self.cents < other.cents
            def __bool__(self): return self.cents > 0
            def __hash__(self): return hash(self.cents)
            def __contains__(self, item): return item == self.cents
            def __exit__(self, kind, *_): return kind is KeyError

        class Liar(Yes):
            def __eq__(self, other): return "yes"

        class Plain:
            cents = 3

        class Pair(typing.NamedTuple):
            left: int
            right: int

        class Sized:
            def __len__(self): return 0

        class Listed:
            def __iter__(self): return iter([1, 2])

        yes = Yes()

        async def fetch(): return 1
        async def stream(): yield 1
        def later(): return fetch()
        def call(function): return function()
        def peek(value): return value._secret
        def keys(mapping): return {Yes(): 1}
    """
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION, opaque=["calc.Money", "calc.Liar"]) as made:
        yield made


@pytest.fixture
def calc(made: Crossing) -> Any:
    made.troubles()
    return importlib.import_module("calc")


VERDICTS: list[Callable[[Any], Any]] = [
    lambda yes: yes == 3,
    lambda yes: yes == 3,
    lambda yes: yes != 3,
    lambda yes: yes < 3,
    lambda yes: yes > 3,
    lambda yes: yes >= 3,
    bool,
    lambda yes: not yes,
    lambda yes: 3 in yes,
    lambda yes: yes in [3, 4],
    hash,
    lambda yes: {yes: 1},
    lambda yes: yes.anything.at.all() == 3,
    lambda yes: sorted([yes, yes]),
    lambda yes: max(yes, yes),
]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_no_verdict_of_an_all_yes_object_is_taken(made: Crossing, calc: Any, verdict: Callable[[Any], Any]) -> None:
    with pytest.raises(OpaqueValue):
        verdict(calc.yes)
    (trouble,) = made.troubles()
    assert (explain(trouble) or "").startswith("opaque: __")


def test_an_all_yes_object_is_no_instance_and_swallows_no_failure(made: Crossing, calc: Any) -> None:
    assert not isinstance(3, calc.Yes)
    assert not isinstance(calc.yes, int)
    assert calc.yes is not True
    with pytest.raises(OpaqueValue), calc.yes:
        raise AssertionError("failed")
    assert len(made.troubles()) == 1


def test_an_opted_in_class_is_asked(made: Crossing, calc: Any) -> None:
    assert calc.Money(3) == calc.Money(3)
    assert calc.Money(3) == 3
    assert (calc.Money(3) == calc.Money(4)) is False
    assert calc.Money(3) < calc.Money(4)
    assert not calc.Money(0)
    assert 3 in calc.Money(3)
    assert {calc.Money(1), calc.Money(1)} == {calc.Money(1)}
    calc.Money(1).__exit__(KeyError, KeyError(), None)
    assert not made.troubles()


def test_a_verdict_is_true_or_false(calc: Any) -> None:
    with pytest.raises(TypeError, match="expected bool"):
        _ = calc.Liar() == 3


def test_a_class_without_an_opinion_needs_no_opting_in(made: Crossing, calc: Any) -> None:
    plain = calc.Plain()
    assert plain == plain
    assert plain != calc.Plain()
    assert plain
    assert plain in {plain, 1}
    assert 2 in calc.Listed()
    assert 3 not in calc.Listed()
    assert len(calc.Sized()) == 0
    with pytest.raises(OpaqueValue):
        bool(calc.Sized())
    assert len(made.troubles()) == 1


def test_a_dict_with_an_opaque_key_is_refused(made: Crossing, calc: Any) -> None:
    with pytest.raises(OpaqueValue):
        calc.keys({})
    made.troubles()
    assert calc.Listed is not None


class Mine:
    _secret = 5


def _subclassed(calc: Any) -> Any:
    class Child(calc.Pair):  # type: ignore[misc]
        pass

    return calc.call(lambda: Child(1, 2))


def _threaded(calc: Any) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            calc.Plain()
        except CannotCross as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise errors[0]


CANNOT: list[tuple[str, Callable[[Any], Any]]] = [
    ("async", lambda calc: calc.fetch()),
    ("async", lambda calc: calc.stream()),
    ("async", lambda calc: calc.later()),
    ("subclass", _subclassed),
    ("copy", lambda calc: calc.Plain().__reduce_ex__(2)),
    ("thread", _threaded),
    ("private", lambda calc: calc.peek(Mine())),
    ("module", lambda calc: calc.call(lambda: pytest)),
    ("object", lambda calc: calc.call(lambda: pytest.raises(ValueError, match="x"))),
    ("deep", lambda calc: calc.call(_deep)),
]


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    return deep


@pytest.mark.parametrize(("reason", "use"), CANNOT)
def test_what_cannot_cross_says_so_and_is_remembered(
    made: Crossing, calc: Any, reason: str, use: Callable[[Any], Any]
) -> None:
    with pytest.raises(CannotCross) as refused:
        use(calc)
    assert refused.value.reason == reason
    assert (explain(refused.value) or "").startswith(reason)
    assert any(isinstance(trouble, CannotCross) and trouble.reason == reason for trouble in made.troubles())
    assert calc.call(lambda: 1) == 1


def test_a_copy_is_made_over_there(calc: Any) -> None:
    money = calc.Plain()
    other = copy.deepcopy(money)
    other.cents = 4
    assert (money.cents, other.cents) == (3, 4)
