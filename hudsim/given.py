"""``given``: whether what was given is what it must be; what is not is refused before anything is done with it.

Each function returns the value, or raises :class:`~hudsim.errors.UsageError`: ``what`` (""; the caller says that), what
was got, what was expected.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hudsim.errors import UsageError

__all__ = [
    "check_arguments",
    "given_a",
    "given_count",
    "given_hook",
    "given_object",
    "given_path",
    "given_seconds",
    "given_text",
    "refusal",
    "shown",
]

T = TypeVar("T")

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def shown(value: object) -> str:
    """``value`` in a message: cut short, and without what a repr of its own may raise."""
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__qualname__', 'without a name')}"
    if type(value).__repr__ is object.__repr__:
        return f"a {type(value).__name__}"
    try:
        return _REPR.repr(value)
    except Exception:  # noqa: BLE001 - a repr is the caller's own code, and one of a huge number raises
        return f"a {type(value).__name__}"


def refusal(what: str, value: object, expected: str) -> UsageError:
    """The error to raise: ``what: got value, expected that``."""
    words = f"got {shown(value)}, expected {expected}"
    return UsageError(f"{what}: {words}" if what else words)


def given_a(kind: type, value: T, what: str, expected: str) -> T:
    """A ``kind``."""
    if not isinstance(value, kind):
        raise refusal(what, value, expected)
    return value


def given_text(value: Any, what: str, expected: str = "a text") -> str:
    """Text that is not empty and that UTF-8 can hold."""
    if not isinstance(value, str) or not value:
        raise refusal(what, value, expected)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refusal(what, value, f"{expected} without lone surrogates") from None
    return value


def given_path(value: Any, what: str) -> Path:
    """A path of the file system, as text or as a ``Path``; whether anything is there is not looked at."""
    words = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(words, str) or "\0" in words:
        raise refusal(what, value, "a path")
    return Path(words)


def given_count(value: Any, what: str) -> int:
    """A whole number from 1; no truth value."""
    if type(value) is not int or value < 1:
        raise refusal(what, value, "a whole number, at least 1")
    return value


def given_seconds(value: Any, what: str) -> float:
    """A finite number above 0; no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise refusal(what, value, "seconds above 0")
    return float(value)


def given_object(value: Any, what: str) -> dict[str, Any]:
    """A copy of a mapping as JSON gives it back: names and plain values, numbers all finite."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refusal(what, value, "an object of names and plain JSON values")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} is no plain JSON: {error}".lstrip()) from None
    return plain


def given_hook(value: T, what: str, arguments: int, expected: str) -> T:
    """A coroutine function, or an object that is called as one, which takes so many ``arguments``; no class."""
    called: Any = value
    while isinstance(called, functools.partial):
        called = called.func
    is_one = inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(_call_of(called))
    if isinstance(value, type) or not callable(value) or not is_one:
        raise refusal(what, value, expected)
    check_arguments(value, what, arguments, expected)
    return value


def check_arguments(value: Callable[..., Any], what: str, arguments: int, expected: str) -> None:
    """Whether it can be called with so many ``arguments``, as far as it says what it takes."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of what is written in C it is not always known
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        raise UsageError(f"{what}: got {shown(value)}, expected {expected} ({error})") from None


def _call_of(value: Any) -> Any:
    """What calling an object runs, be it of its class or of a base."""
    return next((vars(kind)["__call__"] for kind in type(value).__mro__ if "__call__" in vars(kind)), None)
