from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hudsim.graders.crossing.tests_side import Crossing
from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc.py": """
        def add_to(box, value):
            box.append(value) if hasattr(box, "append") else box.add(value)

        def same(box):
            return box

        def sort(box):
            box.sort()

        def nested(box):
            box["k"].append(box["k"][0])
            box["new"] = [1]
            return box["new"]

        def scale(array):
            array *= 2

        def between(box, function):
            box.append("before")
            function()
            return list(box)

        class Keeper:
            def __init__(self, box=None):
                self.box = [] if box is None else box
                self.log = []

            def add(self, value):
                self.box.append(value)

            def seen(self):
                return list(self.box)

            def copied(self):
                return list(self.box)
    """
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION) as made:
        yield made


@pytest.fixture
def calc(made: Crossing) -> Any:
    return importlib.import_module("calc")


@pytest.mark.parametrize("box", [[1], {1}, deque([1]), bytearray(b"\1")])
def test_a_changed_argument_is_changed(calc: Any, box: Any) -> None:
    calc.add_to(box, 7)
    assert list(box) == [1, 7]


def test_changes_keep_identity_and_order(calc: Any) -> None:
    box: list[Any] = [3, 1, 2]
    calc.sort(box)
    assert box == [1, 2, 3]
    assert calc.same(box) is box
    inner = [5]
    outer = {"k": inner}
    new = calc.nested(outer)
    assert outer == {"k": [5, 5], "new": [1]}
    assert outer["k"] is inner
    assert outer["new"] is new


def test_an_array_is_changed_in_place(calc: Any) -> None:
    array = np.arange(3.0)
    calc.scale(array)
    assert array.tolist() == [0, 2, 4]


def test_a_list_that_is_kept_stays_one_list(calc: Any) -> None:
    box = [1]
    keeper = calc.Keeper(box)
    box.append(2)
    assert keeper.seen() == [1, 2]
    keeper.add(3)
    assert box == [1, 2, 3]
    assert keeper.box is box


def test_a_list_of_the_solution_is_live_and_a_copy_is_none(calc: Any) -> None:
    keeper = calc.Keeper()
    keeper.box.append(1)
    live = keeper.box
    keeper.add(2)
    assert live == [1, 2]
    assert keeper.seen() == [1, 2]
    keeper.copied().append(9)
    assert keeper.seen() == [1, 2]
    live.append([3])
    live[2].append(4)
    assert keeper.seen() == [1, 2, [3, 4]]


def test_what_a_callback_does_is_seen_at_once(calc: Any) -> None:
    box: list[str] = []
    seen: list[list[str]] = []

    def function() -> None:
        seen.append(list(box))
        box.append("in")

    assert calc.between(box, function) == ["before", "in"]
    assert seen == [["before"]]
    assert box == ["before", "in"]


def test_nothing_stays_shared_that_one_side_let_go(made: Crossing, calc: Any) -> None:
    keeper: Any = None
    for at in range(200):
        keeper = calc.Keeper([at])
        calc.sort([[3], [2]])
        keeper.add([at])
        assert keeper.seen() == [at, [at]]
    del keeper
    for _ in range(6):
        calc.same(0)
    assert len(made.peer._aliases) <= 1
    assert len(made.peer.objects._stand_ins) < 20
