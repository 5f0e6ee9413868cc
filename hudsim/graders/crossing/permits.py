"""``refusal``: the few things that the solution's side may ask of the tests' side."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from hudsim.graders.crossing.dunders import BY_CALL, OF_DESCRIPTORS, VERDICTS
from hudsim.graders.crossing.names import untouchable
from hudsim.graders.crossing.operations import OPERATIONS
from hudsim.graders.crossing.values import PLAIN

__all__ = ["OPERATIONS_FOR_THE_SOLUTION", "Given", "public", "raw", "refusal", "replaces"]

_SHOWN = frozenset(
    {"__annotations__", "__doc__", "__match_args__", "__module__", "__name__", "__qualname__", "__wrapped__"}
)
_DUNDERS = BY_CALL | VERDICTS
_OF_PATHS = {
    ("tarfile", "TarFile"): {"add", "extract", "extractall", "gettarinfo"},
    ("zipfile", "ZipFile"): {"extract", "extractall", "write"},
    ("configparser", "RawConfigParser"): {"read"},
    ("xml.etree.ElementTree", "ElementTree"): {"parse", "write"},
}
"""The methods of what a test may hand over that open a file by its path, where the tests are."""
_DESCRIPTORS = (classmethod, property, staticmethod, types.FunctionType, types.MethodType)


class Given(Protocol):
    """What the solution's side was given of this one."""

    def lent(self, value: Any) -> bool:
        """Whether this very object was handed over."""

    def described(self, kind: Any) -> bool:
        """Whether this class was, or an object of it."""


def gives(value: Any, name: str) -> bool:
    """Whether the solution may have the attribute of this name: a public one, a dataclass's field; of a mock nothing
    that says or makes what it was asked, of an archive nothing that opens another file.
    """
    if name.startswith("_"):
        return name in _SHOWN or name in _fields_of(value) or (name == "__dict__" and _of_the_tests(value))
    if _mocks(value):
        return name not in _words_of_mocks()
    return not any(name in _OF_PATHS.get((kind.__module__, kind.__name__), ()) for kind in type(value).__mro__)


def refusal(what: str, operands: tuple[Any, ...], given: Given) -> str | None:
    """Why this must not be done for the solution: a reason of :class:`CannotCross`. None: it may.

    Only what a test handed over is called or looked into; a class that describes such an object is looked at alone.
    """
    if what in _FREE:
        return None
    check = _CHECKS.get(what)
    if check is None or not operands:
        return "copy" if what in {"copy", "deepcopy"} else "object"
    value = operands[1] if what == "method" and len(operands) > 1 else operands[0]
    if untouchable(value) is not None:
        return "object"
    looked_at = what in _LOOKS and isinstance(value, type) and given.described(value) and not _standard(value)
    if not (given.lent(value) or looked_at):
        return "object"
    try:
        return check(given, *operands)
    except TypeError:  # not the operands that this takes
        return "object"


def _call(given: Given, function: Any, args: Any, options: Any) -> str | None:
    return "class" if isinstance(function, type) and _standard(function) else None


def _call_dunder(given: Given, value: Any, name: Any, args: Any, options: Any) -> str | None:
    return _dunder(given, value, name, args)


def _dunder(given: Given, value: Any, name: Any, args: Any) -> str | None:
    if isinstance(value, type):  # those of its metaclass make objects
        return "object"
    if type(name) is not str or name not in _DUNDERS:
        return "private"
    if name in OF_DESCRIPTORS and _standard(type(value)) and type(value) not in _DESCRIPTORS:
        return "object"
    return None


def _method(given: Given, owner: Any, value: Any, name: Any, args: Any, options: Any) -> str | None:
    if isinstance(value, type) or not (given.described(owner) and owner in type(value).__mro__):
        return "object"
    if type(name) is not str or name.startswith("_") or not gives(value, name):
        return "private"
    found = inspect.getattr_static(owner, name, None)
    return None if isinstance(found, types.FunctionType) else "private"


def _get(given: Given, value: Any, name: Any) -> str | None:
    if type(name) is not str:
        return "private"
    return None if gives(value, name) or not _has(value, name) else "private"


def _set(given: Given, value: Any, name: Any, new: Any = None) -> str | None:
    if type(name) is not str or name.startswith("_"):
        return "private"
    found = inspect.getattr_static(type(value), name, None)  # what a test would ask next is not replaced
    behaves = callable(found) or (hasattr(type(found), "__get__") and not hasattr(type(found), "__set__"))
    behaves = behaves or _mocks(inspect.getattr_static(value, name, None))
    if not _of_the_tests(value):
        return "object"
    return "private" if behaves else None


def _fields(given: Given, value: Any, names: Iterable[Any]) -> str | None:
    return None if all(type(name) is str and gives(value, name) for name in names) else "private"


def _look(given: Given, value: Any) -> None:
    return None


def replaces(before: Iterable[Any], after: Iterable[Any]) -> bool:
    """Whether a mock is gone from a container, and what a test could ask in its place has come."""
    before, after = list(before), list(after)
    gone = any(_mocks(one) and not any(one is other for other in after) for one in before)
    return gone and any(type(one) not in PLAIN and not any(one is other for other in before) for one in after)


_CHECKS: dict[str, Callable[..., str | None]] = {
    "call": _call,
    "call_dunder": _call_dunder,
    "dunder": _dunder,
    "method": _method,
    "get": _get,
    "set": _set,
    "del": _set,
    "fields": _fields,
    "dir": _look,
    "signature": _look,
}
_LOOKS = frozenset({"get", "dir", "signature"})
_FREE = frozenset({"input", "read"})


def public(value: Any, name: str) -> Any:
    """The attribute that the solution is given; of ``__dict__`` what is public of it. Raises AttributeError."""
    if name == "__dict__" and gives(value, name):
        return {word: public(value, word) for word in vars(value) if gives(value, word)}
    found = getattr(value, name) if gives(value, name) else None
    owner = getattr(found, "__self__", None) if isinstance(found, _BOUND) else None
    if not gives(value, name) or (isinstance(owner, type) and _standard(owner)):  # it would make objects of that class
        raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
    return found


def raw(kind: type, name: str) -> bool:
    """Whether the solution may name what this class of the tests held under this name when it was described."""
    return not _standard(kind) and gives(kind, name)


_BOUND = (types.MethodType, types.BuiltinMethodType)

OPERATIONS_FOR_THE_SOLUTION: dict[str, Callable[..., Any]] = {
    **OPERATIONS,  # most of them are refused
    "get": public,
    "fields": lambda value, names: tuple(public(value, name) for name in names),
}


def _has(value: Any, name: str) -> bool:
    """Whether there is such an attribute; without running anything."""
    missing = object()
    return inspect.getattr_static(value, name, missing) is not missing


def _standard(kind: type) -> bool:
    return (kind.__module__ or "").partition(".")[0] in sys.stdlib_module_names


def _of_the_tests(value: Any) -> bool:
    """Whether the solution may set its attributes: an object of a class that the tests made."""
    return not isinstance(value, (type, types.FunctionType)) and not _standard(type(value)) and not _mocks(value)


def _fields_of(value: Any) -> Iterable[str]:
    found = inspect.getattr_static(type(value), "__dataclass_fields__", ())
    return found if type(found) is dict else ()


def _mocks(value: Any) -> bool:
    """Whether it is one of unittest.mock's, or a function that has one."""
    mock = sys.modules.get("unittest.mock")
    kind = () if mock is None else mock.NonCallableMock
    made = inspect.getattr_static(value, "mock", None) if isinstance(value, types.FunctionType) else value
    return isinstance(made, kind)


@functools.cache
def _words_of_mocks() -> frozenset[str]:
    from unittest import mock

    return frozenset(name for name in dir(mock.AsyncMock()) if not name.startswith("_"))
