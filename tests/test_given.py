"""What is not what it must be is refused in words, whatever it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import UsageError
from hudsim.given import (
    given_a,
    given_count,
    given_hook,
    given_object,
    given_path,
    given_seconds,
    given_text,
    shown,
)


class Spiteful:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(levels: int) -> list[Any]:
    nest: list[Any] = []
    for _ in range(levels):
        nest = [nest]
    return nest


ANYTHING = [5, 1.5, True, float("nan"), 10**5000, object(), int, len, Spiteful(), b"x", [1], {1: 2}, None, nested(5000)]


@pytest.mark.parametrize(
    ("check", "takes"),
    [
        (lambda value: given_a(str, value, "it", "a text"), ()),
        (lambda value: given_text(value, "it"), ()),
        (lambda value: given_path(value, "it"), ()),
        (lambda value: given_count(value, "it"), (5, 10**5000)),
        (lambda value: given_seconds(value, "it"), (5, 1.5, 10**5000)),
        (lambda value: given_object(value, "it"), ()),
        (lambda value: given_hook(value, "it", 1, "a coroutine function"), ()),
    ],
)
def test_each_refuses_what_it_does_not_take_and_says_what_it_expected(
    check: Callable[[Any], Any], takes: tuple[Any, ...]
) -> None:
    for value in ANYTHING:
        if any(value is taken or value == taken for taken in takes if type(taken) is type(value)):
            continue
        with pytest.raises(UsageError, match=r"^it: got .*, expected "):
            check(value)


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: type(value).__name__)
def test_what_is_shown_of_a_value_is_short(value: Any) -> None:
    assert 0 < len(shown(value)) < 200


@pytest.mark.parametrize("value", [{"a": object()}, {"a": float("inf")}, {"a": nested(5000)}])
def test_an_object_holds_plain_json_alone(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^it is no plain JSON: "):
        given_object(value, "it")


def test_text_that_no_file_can_hold_is_refused() -> None:
    for value in ("", "\ud800"):
        with pytest.raises(UsageError, match=r"^it: got '"):
            given_text(value, "it")


async def takes_one(run: Any) -> None:
    del run


class Callable1:
    async def __call__(self, run: Any) -> None:
        del run


def test_whatever_is_called_as_a_coroutine_function_is_one() -> None:
    async def two(run: Any, more: int) -> None:
        del run, more

    for good in (takes_one, Callable1(), Callable1().__call__, functools.partial(two, more=1)):
        assert given_hook(good, "it", 1, "one") is good
    for bad in (two, Callable1, lambda run: None):
        with pytest.raises(UsageError, match=r"^it: got "):
            given_hook(bad, "it", 1, "one")


def test_a_path_is_text_or_a_path() -> None:
    assert given_path("a/b", "it") == given_path(Path("a/b"), "it")
    with pytest.raises(UsageError):
        given_path("a\0b", "it")
