"""``Aliases``: the containers that both sides hold, and what changed in them since they last spoke.

A list that the solution keeps is the test's list: what either side does to it, the other finds done the next time it
is its turn. Which side still holds one is known from the reference counts of CPython.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hudsim.graders.crossing.boxes import BOXES, box_of, same
from hudsim.graders.crossing.errors import CannotCross

__all__ = ["MOST_ALIASES", "Aliases", "Change", "held"]

MOST_ALIASES = 1 << 18

Change = tuple[int, tuple[Any, ...]]


def held(boxes: list[Any]) -> list[tuple[int, Any]]:
    """(place, container) of those that someone else holds. ``boxes``, outer before inner, is empty then."""
    found, size = [], len(boxes)
    boxes.reverse()
    while boxes:
        box = boxes.pop()
        if sys.getrefcount(box) > _ALONE:
            found.append((size - len(boxes) - 1, box))
    return found


class Aliases:
    """By number; the two sides number theirs ``first``, ``first + 2`` …"""

    STEP = 2

    def __init__(self, first: int) -> None:
        self._next = first
        self._unsaid: list[int] = []
        self._known: dict[int, tuple[Any, int, list[Any]]] = {}  # number -> container, its kind, contents last told
        self._numbers: dict[int, int] = {}  # id -> number

    def __len__(self) -> int:
        return len(self._known)

    def reserve(self, count: int) -> int:
        """The first of so many numbers of this side's."""
        first = self._next
        self._next += self.STEP * count
        return first

    def add(self, number: int, box: Any) -> None:
        """Both sides hold it from now on. Raises :class:`CannotCross`."""
        place = box_of(type(box))
        if place is None or id(box) in self._numbers:
            return
        if len(self._known) >= MOST_ALIASES:
            raise CannotCross("many", f"got more than {MOST_ALIASES} containers that both sides hold")
        self._known[number] = (box, place, BOXES[place].contents(box))
        self._numbers[id(box)] = number

    def number(self, identity: int) -> int | None:
        """By which both sides know the container of this id."""
        return self._numbers.get(identity)

    def box(self, number: int) -> Any:
        """Raises KeyError."""
        return self._known[number][0]

    def news(self) -> tuple[tuple[int, ...], tuple[Change, ...]]:
        """(those that nobody holds here any more, what changed): what the other side must be told."""
        changes = []
        for number, (box, place, before) in list(self._known.items()):
            contents = BOXES[place].contents(box)
            if same(place, contents, before):
                contents = before
            else:
                changes.append((number, tuple(contents)))
            del self._known[number]
            if sys.getrefcount(box) <= _LISTED:
                self._unsaid.append(number)
                self._numbers.pop(id(box), None)
            else:
                self._known[number] = (box, place, contents)
        unsaid, self._unsaid = tuple(self._unsaid), []  # what is asked while they are told must not tell them first
        return unsaid, tuple(changes)

    def held(self, number: int) -> Sequence[Any]:
        """What is in that container now."""
        known = self._known.get(number)
        return () if known is None else BOXES[known[1]].contents(known[0])

    def untold(self, dropped: Sequence[int], changes: Sequence[Change]) -> None:
        """These news could not be told."""
        self._unsaid += dropped
        for number, _ in changes:
            if (known := self._known.get(number)) is not None:
                self._known[number] = (known[0], known[1], [_UNTOLD])

    def drop(self, number: int) -> None:
        """The other side holds it no more."""
        known = self._known.pop(number, None)
        if known is not None:
            self._numbers.pop(id(known[0]), None)

    def change(self, number: int, contents: Sequence[Any]) -> None:
        """The other side changed it."""
        known = self._known.get(number)
        if known is not None:
            box, place, _ = known
            BOXES[place].refill(box, contents)
            self._known[number] = (box, place, BOXES[place].contents(box))


def _calibrate() -> tuple[int, int]:
    """The counts that :func:`held` and :meth:`Aliases.news` see when nobody else holds a container."""
    boxes: list[Any] = [[]]
    boxes.reverse()
    alone = 0
    while boxes:
        box = boxes.pop()
        alone = sys.getrefcount(box)
        del box
    known = {1: ([], 0, [])}  # type: ignore[var-annotated]
    for number, (box, _place, _before) in list(known.items()):
        del known[number]
        return alone, sys.getrefcount(box)
    raise AssertionError


_UNTOLD = object()
_ALONE, _LISTED = _calibrate()
