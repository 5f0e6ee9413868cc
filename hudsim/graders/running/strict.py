"""``strict``: comparisons in hidden tests that a solution's objects cannot answer for themselves."""

from __future__ import annotations

import builtins
import collections.abc
import decimal
import fractions
import functools
import operator
import sys
import unittest
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "OpaqueValue",
    "all_of",
    "any_of",
    "bool_of",
    "compare",
    "isinstance_of",
    "own",
    "patch_unittest",
    "setup",
    "truth",
]

_HEAP_TYPE = 1 << 9
_MOST = 200_000  # elements looked at in one comparison
_DEEPEST = 50
_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_attributes: Callable[[type], Any] = type.__dict__["__dict__"].__get__
_flags: Callable[[type], int] = type.__dict__["__flags__"].__get__
_isinstance, _issubclass, _type, _len, _bool = isinstance, issubclass, type, len, bool
_RAW: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
_MEASURED = (
    "__sub__", "__rsub__", "__abs__", "__iter__", "__len__", "__getitem__", "__contains__", "keys", "items", "values",
    "real", "imag", "__float__", "__complex__",
)  # fmt: skip
_PLAIN = (int, float, complex, str, list, tuple, dict, decimal.Decimal, fractions.Fraction)
_SETS = (set, frozenset)
_ORDER = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}

_ours: dict[int, type] = {}  # by id: a metaclass may lie about its hash
_trusted_folders: tuple[str, ...] = ()
_comparable: frozenset[str] = frozenset()


class OpaqueValue(Exception):
    """A test asked an object of the solution's own class for its truth, order or contents.

    It could answer anything: the author names its class in ``comparable`` if that is meant.
    """


def setup(*, folders: Iterable[str], comparable: Iterable[str]) -> None:
    """All classes that there are now are trusted, and those of modules below ``folders``.

    ``comparable`` names the solution's classes (``calc.Version``) that may answer for themselves.
    """
    global _trusted_folders, _comparable
    _trusted_folders, _comparable = tuple(f"{folder.rstrip('/')}/" for folder in folders), frozenset(comparable)
    waiting: list[type] = [object]
    while waiting:
        cls = waiting.pop()
        if id(cls) not in _ours:
            _ours[id(cls)] = cls
            waiting += type.__subclasses__(cls)


def own(cls: Any) -> Any:
    """Decorates each class that a test file defines."""
    if _isinstance(cls, _type):
        _ours[id(cls)] = cls
    return cls


def compare(operators: tuple[str, ...], *operands: Any) -> Any:
    """``a == b``, or a chain of comparisons."""
    result: Any = True
    for n, name in enumerate(operators):
        result = _one(name, operands[n], operands[n + 1])
        if n + 1 < _len(operators) and not result:
            break
    return result


def truth(value: Any) -> bool:
    """``bool(value)``, for values that may be asked."""
    cls = _type(value)
    if cls is _bool:
        return value  # type: ignore[no-any-return]
    if _foreign(cls) and not _may(cls) and _answers(cls, "__bool__", "__len__") is not False:
        raise OpaqueValue(f"got an object of the solution's class {cls.__name__} where true or false is meant")
    return _bool(value)


def bool_of(value: Any = False) -> bool:
    """``bool``, as a call in a test."""
    return truth(value)


def all_of(values: Iterable[Any]) -> bool:
    """``all``."""
    return builtins.all(truth(value) for value in values)


def any_of(values: Iterable[Any]) -> bool:
    """``any``."""
    return builtins.any(truth(value) for value in values)


def isinstance_of(value: Any, kind: Any) -> bool:
    """``isinstance`` by the object's real class."""
    if not _isinstance(value, kind):
        return False
    cls = _type(value)
    if not _foreign(cls):
        return True
    kinds, flat = [kind], []
    while kinds:
        one = kinds.pop()
        if _isinstance(one, tuple):
            kinds += one
        else:
            kinds += getattr(one, "__args__", ()) if not _isinstance(one, _type) else ()
            flat.append(one)
    return builtins.any(_is_kind(cls, one) for one in flat if _isinstance(one, _type))


def _is_kind(cls: type, kind: type) -> bool:
    return _issubclass(cls, kind) if not _foreign(_type(kind)) else builtins.any(kind is base for base in _mro(cls))


# Whose class is it ------------------------------------------------------------------------------------------------


def _foreign(cls: type) -> bool:
    """The class is the solution's."""
    if not _flags(cls) & _HEAP_TYPE or id(cls) in _ours:
        return False
    if _of_trusted_module(cls):
        _ours[id(cls)] = cls
        return False
    return True


def _of_trusted_module(cls: type) -> bool:
    module = sys.modules.get(str(_attributes(cls).get("__module__")))
    origin: Any = getattr(getattr(module, "__spec__", None), "origin", None)
    if not _isinstance(origin, str) or not (origin in ("built-in", "frozen") or origin.startswith(_trusted_folders)):
        return False
    found: Any = module
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def _may(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" in _comparable


def _answers(cls: type, *names: str) -> bool | None:
    """Whether one of the methods is the solution's own; None: no class has any."""
    found = None
    for name in names:
        for base in _mro(cls):
            if name in _attributes(base):
                if base is not object and _foreign(base):
                    return True
                found = False
                break
    return found


def _any_answer(cls: type, names: Iterable[str]) -> bool:
    return builtins.any(_answers(cls, name) is True for name in names)


def _tainted(value: Any) -> bool:
    """It, or something in it, is of a class that says itself what it is equal to."""
    return _holds(value, lambda cls: _answers(cls, "__eq__", "__ne__") is True or _set_like(cls))


def _set_like(cls: type) -> bool:
    """A set of the solution's that compares as collections.abc does: by the length and the elements that it says."""
    return _foreign(cls) and collections.abc.Set in _mro(cls) and _answers(cls, "__eq__") is False


def _unmeasurable(cls: type) -> bool:
    """A class of the solution's that may say itself how far it, or what it gives for its elements, is from a number."""
    if not _foreign(cls):
        return False
    return _any_answer(cls, _MEASURED) or not builtins.any(base in _PLAIN for base in _mro(cls))


def _approximate(value: Any) -> bool:
    return _type(value).__module__ in ("_pytest.approx", "_pytest.python_api")


def _holds(value: Any, test: Callable[[type], bool]) -> bool:
    """Whether it, or something in it, is of such a class, that is not ``comparable``."""
    waiting, seen = [value], set[int]()
    while waiting and _len(seen) < _MOST:
        one = waiting.pop()
        cls = _type(one)
        if id(one) in seen:
            continue
        if test(cls) and not _may(cls):
            return True
        parts = _parts(one, cls)
        if parts is not None:
            seen.add(id(one))
            waiting += parts
    return False


def _parts(value: Any, cls: type) -> list[Any] | None:
    """What is in a container of Python's own, whatever its class says of itself."""
    for base in _mro(cls):
        if base in (list, tuple, set, frozenset, deque):
            return builtins.list(base.__iter__(value))
        if base is dict:
            return [part for item in dict.items(value) for part in item]
    return None


# One comparison ---------------------------------------------------------------------------------------------------


def _one(name: str, a: Any, b: Any) -> Any:
    if name in ("==", "!="):
        for value, other in ((a, b), (b, a)):
            if _approximate(value) and _holds(other, _unmeasurable):
                return name == "!="
        if not (_tainted(a) or _tainted(b)):
            return _RAW[name](a, b)
        return _alike(a, b, _DEEPEST) is (name == "==")
    if name in _ORDER:
        return _ordered(name, a, b)
    if name in ("in", "not in"):
        return _within(a, b) is (name == "in") if _tainted(a) or _tainted(b) or _opaque(b) else _RAW[name](a, b)
    return _RAW[name](a, b)


def _alike(a: Any, b: Any, depth: int) -> bool:
    if not (_tainted(a) or _tainted(b)):
        return _bool(a == b)
    a, b = (builtins.frozenset(one) if _set_like(_type(one)) else one for one in (a, b))
    if _isinstance(a, _SETS) and _isinstance(b, _SETS) and _type(a) is not _type(b):
        a, b = builtins.frozenset(a), builtins.frozenset(b)
    cls = _type(a)
    if cls is not _type(b) or not depth:
        return False
    if cls in (list, tuple, deque):
        return _len(a) == _len(b) and builtins.all(_alike(x, y, depth - 1) for x, y in zip(a, b, strict=True))
    if cls is dict:
        return a.keys() == b.keys() and builtins.all(_alike(value, b[key], depth - 1) for key, value in a.items())
    if cls in (set, frozenset):
        return _len(a) == _len(b) and builtins.all(builtins.any(_alike(x, y, depth - 1) for y in b) for x in a)
    return _bool(a == b)  # two of one class of the solution's: theirs to say


def _ordered(name: str, a: Any, b: Any) -> Any:
    for value in (a, b):
        cls = _type(value)
        own_order = _answers(cls, *_ORDER.values()) and not _may(cls)
        if (own_order or _tainted(value)) and _type(a) is not _type(b):
            raise OpaqueValue(f"got an object of the solution's class {cls.__name__}, expected plain data to order")
    return _RAW[name](a, b)


def _opaque(container: Any) -> bool:
    cls = _type(container)
    return _answers(cls, "__contains__", "__iter__", "__getitem__") is True and not _may(cls)


def _within(value: Any, container: Any) -> bool:
    if _opaque(container):
        raise OpaqueValue(f"got an object of the solution's class {_type(container).__name__}, expected a container")
    return builtins.any(_alike(value, one, _DEEPEST) for one in container)


# unittest's assertions --------------------------------------------------------------------------------------------


def patch_unittest() -> None:
    """The assertions of ``unittest.TestCase`` compare so too."""
    for name in ("assertEqual", "assertIn", "assertTrue", "assertFalse", "assertIsInstance"):
        setattr(unittest.TestCase, name, _checked(getattr(unittest.TestCase, name), _CHECKS[name]))
    for name in ("assertAlmostEqual", "assertNotAlmostEqual"):
        setattr(unittest.TestCase, name, _checked(getattr(unittest.TestCase, name), _measurable))
    for name in ("assertCountEqual", "assertLess", "assertGreater", "assertLessEqual",
                 "assertGreaterEqual", "assertSequenceEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual",
                 "assertSetEqual", "assertNotEqual", "assertNotIn", "assertRegex"):  # fmt: skip
        setattr(unittest.TestCase, name, _checked(getattr(unittest.TestCase, name), _plain))


def _plain(a: Any, b: Any) -> bool:
    if (_tainted(a) or _tainted(b)) and _type(a) is not _type(b):
        raise OpaqueValue(f"got {_type(a).__name__} and {_type(b).__name__}, expected plain data to compare")
    return True


def _measurable(a: Any, b: Any) -> bool:
    if (_holds(a, _unmeasurable) or _holds(b, _unmeasurable)) and _type(a) is not _type(b):
        raise OpaqueValue(f"got {_type(a).__name__} and {_type(b).__name__}, expected plain numbers to compare")
    return _plain(a, b)


def _asked(a: Any, *_: Any) -> bool:
    truth(a)
    return True


_CHECKS: dict[str, Callable[..., bool]] = {
    "assertEqual": lambda a, b: not (_tainted(a) or _tainted(b)) or _alike(a, b, _DEEPEST),
    "assertIn": lambda a, b: not (_tainted(a) or _tainted(b) or _opaque(b)) or _within(a, b),
    "assertTrue": _asked,
    "assertFalse": _asked,
    "assertIsInstance": lambda a, kind: not _isinstance(a, kind) or isinstance_of(a, kind),
}


def _checked(assertion: Callable[..., Any], holds: Callable[..., bool]) -> Callable[..., Any]:
    @functools.wraps(assertion)
    def checked(case: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()][:2]
        wanted = 1 if holds is _asked else 2
        if _len(values) >= wanted and not holds(*values[:wanted]):
            raise case.failureException(f"{_type(values[0]).__name__} object of the solution's is no {values[1]!r}")
        return assertion(case, *args, **kwargs)

    return checked
