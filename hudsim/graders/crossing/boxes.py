"""``Box``: the mutable containers that cross by content, and are kept alike on both sides."""

from __future__ import annotations

import argparse
import array
import collections
import math
import operator
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hudsim.graders.crossing.link import MOST_BYTES

__all__ = ["BOXES", "BOX_OF", "Box", "box_of", "same"]


class Box(NamedTuple):
    """One kind of container.

    argument
        What ``new`` needs besides the contents; None if nothing.
    contents
        A list of all that it holds, in its order; a mapping's keys and values alternate.
    refill
        Give it these contents, in place.
    """

    new: Callable[[Any], Any]
    argument: Callable[[Any], Any] | None
    contents: Callable[[Any], list[Any]]
    refill: Callable[[Any, Sequence[Any]], None]


def _flat(mapping: Any) -> list[Any]:
    return [word for item in dict.items(mapping) for word in item]


def _pairs(mapping: Any, contents: Sequence[Any]) -> None:
    dict.clear(mapping)
    for at in range(0, len(contents) - 1, 2):
        dict.__setitem__(mapping, contents[at], contents[at + 1])


def _ordered(mapping: Any, contents: Sequence[Any]) -> None:
    mapping.clear()
    for at in range(0, len(contents) - 1, 2):
        mapping[contents[at]] = contents[at + 1]


def _elements(some: Any, contents: Sequence[Any]) -> None:
    some.clear()
    for element in contents:
        some.add(element)


def _items(some: Any, contents: Sequence[Any]) -> None:
    some.clear()
    some.extend(contents)


def _bytes(some: bytearray, contents: Sequence[Any]) -> None:
    some[:] = contents[0]


def _typed(some: Any, contents: Sequence[Any]) -> None:
    del some[:]
    some.frombytes(contents[0])


def _attributes(some: Any, contents: Sequence[Any]) -> None:
    _pairs(vars(some), [str(word) if at % 2 == 0 else word for at, word in enumerate(contents)])


def _array(argument: Any) -> Any:
    import numpy as np

    dtype, shape = np.dtype(argument[0]), tuple(map(int, argument[1]))
    if dtype.hasobject and argument[0] != "O":
        raise TypeError(f"got the dtype {dtype}")
    if math.prod(shape) * dtype.itemsize > MOST_BYTES:
        raise ValueError(f"got an array of shape {shape}, expected at most {MOST_BYTES} bytes")
    return np.empty(shape, dtype)


def _array_contents(some: Any) -> list[Any]:
    return list(some.flat) if some.dtype.kind == "O" else [some.tobytes()]


def _fill(some: Any, contents: Sequence[Any]) -> None:
    import numpy as np

    if some.dtype.kind == "O":
        for at, word in enumerate(contents):
            some.flat[at] = word
    else:
        some[...] = np.frombuffer(contents[0], some.dtype).reshape(some.shape)


BOXES: list[Box] = [
    Box(lambda _: [], None, list, _items),
    Box(lambda _: {}, None, _flat, _pairs),
    Box(lambda _: set(), None, list, _elements),
    Box(lambda _: bytearray(), None, lambda some: [bytes(some)], _bytes),
    Box(lambda most: collections.deque(maxlen=most), lambda some: some.maxlen, list, _items),
    Box(
        lambda _: collections.OrderedDict(),
        None,
        lambda some: [word for item in some.items() for word in item],
        _ordered,
    ),
    Box(lambda _: collections.Counter(), None, _flat, _pairs),
    Box(collections.defaultdict, lambda some: some.default_factory, _flat, _pairs),
    Box(lambda _: types.SimpleNamespace(), None, lambda some: _flat(vars(some)), _attributes),
    Box(lambda code: array.array(str(code)), lambda some: some.typecode, lambda some: [some.tobytes()], _typed),
    Box(lambda _: argparse.Namespace(), None, lambda some: _flat(vars(some)), _attributes),
    Box(_array, lambda some: (some.dtype.str if some.dtype.kind != "O" else "O", some.shape), _array_contents, _fill),
]
_ARRAY = 11
BOX_OF: dict[type, int] = {
    list: 0,
    dict: 1,
    set: 2,
    bytearray: 3,
    collections.deque: 4,
    collections.OrderedDict: 5,
    collections.Counter: 6,
    collections.defaultdict: 7,
    types.SimpleNamespace: 8,
    array.array: 9,
    argparse.Namespace: 10,
}
"""The place in ``BOXES`` of each exact class."""

_BY_VALUE = frozenset({3, 9, _ARRAY})


def box_of(kind: type) -> int | None:
    """The place of this exact class in ``BOXES``, numpy's array among them once there is numpy."""
    place = BOX_OF.get(kind)
    if place is None and kind.__module__ == "numpy" and kind is getattr(sys.modules.get("numpy"), "ndarray", None):
        place = BOX_OF[kind] = _ARRAY
    return place


def same(place: int, contents: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether nothing was put in, taken out or exchanged; asks no object for its opinion."""
    if place in _BY_VALUE:
        return len(contents) == len(before) and all(
            type(a) is type(b) and a == b if type(a) is bytes else a is b for a, b in zip(contents, before, strict=True)
        )
    return len(contents) == len(before) and all(map(operator.is_, contents, before))
