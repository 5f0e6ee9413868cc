"""What one side asks of the other's objects, by its word on the wire."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

from hudsim.graders.crossing.describe import describe_signature

__all__ = ["OPERATIONS"]


def _call(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return function(*args, **options)


def _method(owner: Any, value: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``value.name(…)`` as found, or ``owner.name(value, …)`` if that is another."""
    found = next((kind for kind in type(value).__mro__ if name in vars(kind)), None)
    if found is owner:
        return getattr(value, name)(*args, **options)
    return getattr(owner, name)(value, *args, **options)


def _dunder(value: Any, name: str, args: tuple[Any, ...]) -> Any:
    if name == "__bool__":
        return bool(value)
    if name == "__class_getitem__":
        return operator.getitem(value, *args)
    return getattr(type(value), name)(value, *args)


def _call_dunder(value: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return value(*args, **options)


def _bound(owner: Any, name: str, instance: Any, kind: Any) -> Any:
    """What ``super()`` finds: ``owner``'s own, bound to the instance, or the class if that is None."""
    found = next(vars(base)[name] for base in owner.__mro__ if name in vars(base))
    get = getattr(type(found), "__get__", None)
    return found if get is None else get(found, instance, kind)


def _fields(value: Any, names: tuple[str, ...]) -> Any:
    return tuple(getattr(value, name) for name in names)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": _call,
    "method": _method,
    "dunder": _dunder,
    "call_dunder": _call_dunder,
    "bound": _bound,
    "fields": _fields,
    "get": getattr,
    "set": setattr,
    "del": delattr,
    "dir": lambda value: tuple(dir(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "signature": describe_signature,
}
