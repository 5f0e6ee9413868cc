"""What the other side must know of a class, a function or a module to build its mirror: plain data and class names."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from hudsim.graders.crossing.dunders import BY_CALL, COMPARISONS, VERDICTS
from hudsim.graders.crossing.names import REAL_BASES

__all__ = [
    "describe_class",
    "describe_function",
    "describe_signature",
    "is_async",
    "is_named_tuple",
    "is_whole_enum",
    "public_names",
]

DATA_OF_ENUMS = (int, str, float, bytes)
"""What an enum may be built on, to be a real one on the other side."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_TUPLES_OWN = frozenset({"__new__", "__repr__", "__getnewargs__", "__slots__", "__doc__", "__module__"})


def describe_class(kind: type, *, named: bool = False) -> tuple[tuple[str, Any], ...]:
    """(word, what is said of it) …, with classes in ``bases``; a class that the other side has is its own base."""
    own = vars(kind)
    methods = {name: describe_signature(value) for name, value in own.items() if _is_method(name, value)}
    others = tuple(name for name in own if not _dunder(name) and name not in methods)
    said = {
        "name": kind.__name__,
        "qualname": kind.__qualname__,
        "module": str(kind.__module__),
        "doc": kind.__doc__ if isinstance(kind.__doc__, str) else None,
        "bases": (kind,) if named else tuple(base for base in kind.__bases__ if base is not object),
        "named": named,
        "methods": tuple(methods.items()),
        "others": others,
        "dunders": tuple(_dunders(kind)),
        "absent": tuple(name for name in (BY_CALL | VERDICTS) & own.keys() if own[name] is None),
        **_shape(kind),
    }
    return tuple(said.items())


def _shape(kind: type) -> dict[str, Any]:
    if isinstance(kind, enum.EnumType) and is_whole_enum(kind):
        every: dict[str, Any] = dict(kind.__members__)
        members = tuple((name, member.value) for name, member in every.items())
        return {
            "shape": "enum",
            "members": members,
            "own": tuple(filter(functools.partial(_own, kind), _dunders(kind))),
        }
    if is_named_tuple(kind):
        return {"shape": "tuple", "fields": tuple(kind._fields)}  # type: ignore[attr-defined]
    if "__dataclass_fields__" in vars(kind):
        fields = tuple(
            (field.name, field.init, field.repr, field.compare, field.kw_only) for field in dataclasses.fields(kind)
        )
        return {"shape": "dataclass", "fields": fields}
    return {"shape": "plain"}


def is_whole_enum(kind: enum.EnumType) -> bool:
    """Whether the same members can be made of their names and values."""
    for base in kind.__mro__:
        if not (base is object or base in DATA_OF_ENUMS or isinstance(base, enum.EnumType)):
            return False
    data: Any = getattr(kind, "_member_type_", object)
    same: Any = data.__eq__  # of what it holds, not of what the enum says
    members: list[Any] = list(kind.__members__.values())
    return data is object or all(type(one.value) is data and same(one, one.value) for one in members)


def _own(kind: type, name: str) -> bool:
    """Whether an enum has it of neither the module ``enum`` nor its data's class."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return isinstance(owner, enum.EnumType) and getattr(vars(owner)[name], "__module__", "") != "enum"


def is_named_tuple(kind: type) -> bool:
    """Whether it is a tuple with named fields and a tuple's own opinion of equality and order."""
    if not issubclass(kind, tuple) or not isinstance(getattr(kind, "_fields", None), tuple):
        return False
    if not all(isinstance(name, str) and name.isidentifier() for name in kind._fields):  # type: ignore[attr-defined]
        return False
    return all(
        getattr(kind, name, None) is getattr(tuple, name, None)
        for name in (*VERDICTS, "__iter__", "__len__", "__getitem__")
    )


def _dunders(kind: type) -> list[str]:
    """Those that its mirror must have, and does not have from a real base."""
    found = []
    for name in sorted(BY_CALL | VERDICTS):
        value = getattr(kind, name, None)
        if value is None or value is getattr(object, name, None):
            continue
        owner = next((base for base in kind.__mro__ if name in vars(base)), object)
        if owner is object or owner is BaseException or (owner in REAL_BASES and owner.__module__ != "numbers"):
            continue
        if is_named_tuple(kind) and owner in {tuple, kind} and (owner is tuple or name in _TUPLES_OWN):
            continue
        found.append(name)
    if "__len__" in found and "__bool__" not in found:
        found.append("__bool__")
    if "__dataclass_fields__" in vars(kind):
        for name in (*COMPARISONS, "__hash__"):
            if name in found and name in vars(kind) and _generated(vars(kind)[name]):
                found[found.index(name)] = "=" + name  # by the fields
    return found


def _generated(function: Any) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and code.co_filename == "<string>"


def describe_function(function: Callable[..., Any]) -> tuple[Any, ...]:
    """(name, qualified name, module, text, signature or None, whether it is async)."""
    words = []
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        word = getattr(function, attribute, None)
        words.append(word if type(word) is str else None)
    return (*words, describe_signature(function), is_async(function))


def is_async(function: Any) -> bool:
    """Whether calling it makes a coroutine or an asynchronous generator."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def describe_signature(function: Any) -> tuple[Any, ...] | None:
    """(return annotation, (name, kind, has a default, default, annotation) …); None if it has none to be known."""
    try:
        signature = inspect.signature(function)
    except Exception:  # noqa: BLE001 - a signature is made by the objects' own code
        return None
    return (
        _annotation(signature.return_annotation),
        *(
            (name, int(one.kind), one.default is not one.empty, _default(one.default), _annotation(one.annotation))
            for name, one in signature.parameters.items()
        ),
    )


def _default(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) and type(value) in _PLAIN else repr_of(value)


def repr_of(value: Any) -> str:
    """As text, whatever its class does."""
    try:
        return str(repr(value))
    except Exception:  # noqa: BLE001
        return f"<{type(value).__name__}>"


def _annotation(value: Any) -> tuple[str, Any]:
    if value is inspect.Parameter.empty:
        return ("none", None)
    if value is None or (isinstance(value, type) and value.__module__ == "builtins" and type(value) is type):
        return ("class", value)
    return ("text", value if type(value) is str else inspect.formatannotation(value))


def _is_method(name: str, value: Any) -> bool:
    return isinstance(value, types.FunctionType) and (name == "__init__" or not _dunder(name))


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def public_names(module: types.ModuleType) -> list[str]:
    """What ``from module import *`` gives."""
    listed = getattr(module, "__all__", None)
    if isinstance(listed, (list, tuple)):
        return [str(name) for name in listed]
    return [name for name in vars(module) if not name.startswith("_")]
