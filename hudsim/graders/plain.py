"""``plain``: what a grader says beside the score, as plain JSON."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from hudsim.errors import UsageError
from hudsim.graders.number import unboxed

__all__ = ["clean", "plain", "refused", "shown"]

_DEEPEST = 100  # levels; a cycle ends here too
_LARGEST = 2**1024  # as text, a whole number may cost more than the grade
_LONGEST = 1000  # characters of a repr


def clean(text: Any) -> Any:
    """Text without lone surrogates, which no UTF-8 can hold, each a ``?``; what is no text as it is."""
    return str.encode(text, "utf-8", "replace").decode() if isinstance(text, str) else text


def refused(value: Any, where: str) -> Any:
    """Raise :class:`~hudsim.errors.UsageError` for a ``value`` that is no JSON, and say ``where`` it stands."""
    got = f"got a {type(value).__name__} ({reprlib.repr(value)}), expected plain JSON"
    raise UsageError(f"{where}: {got}" if where else got)


def shown(value: Any, _where: str) -> str:
    """The repr of a ``value`` that is no JSON, of 1000 characters at most."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr is the caller's own code
        text = f"<{type(value).__name__}>"
    return str(clean(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"))


def plain(value: Any, where: str = "", *, other: Callable[[Any, str], Any] = refused) -> Any:
    """A copy of ``value`` in plain JSON values alone.

    Scalars of numpy and torch become Python's own, tuples lists, numbers that are not finite None, keys text as
    :func:`json.dumps` makes them. ``other(value, where)`` gives what stands for anything else: :func:`refused`
    or :func:`shown`. So it does for whole numbers beyond 2 ** 1024, for what is nested more than 100 deep, and for
    a mapping of which two keys make the same text.
    """
    return _plain(value, where, other, _DEEPEST)


def _plain(value: Any, where: str, other: Callable[[Any, str], Any], depth: int) -> Any:
    value = unboxed(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int) and abs(value) < _LARGEST:
        return int(value)
    if isinstance(value, list | tuple) and depth:
        return [_plain(item, f"{where}[{index}]", other, depth - 1) for index, item in enumerate(value)]
    if isinstance(value, Mapping) and depth:
        keys = [_key(key) for key in value]
        if None not in keys and len(set(keys)) == len(keys):
            path = f"{where}." if where else ""
            pairs = zip(keys, value.values(), strict=True)
            return {key: _plain(item, f"{path}{key}", other, depth - 1) for key, item in pairs}
    return other(value, where)


def _key(key: Any) -> str | None:
    """The key as :func:`json.dumps` writes it; None: it refuses it."""
    key = unboxed(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, str):
        return str(clean(key))
    if isinstance(key, float):
        return float.__repr__(key)
    return int.__repr__(key) if isinstance(key, int) and abs(key) < _LARGEST else None
