"""Values: the immutable standard classes that cross by their parts."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import ipaddress
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

__all__ = ["OF_ANY", "PARTS", "PLAIN", "REBUILD", "parts_of"]

Parts = Callable[[Any], tuple[Any, ...]]


def _date_parts(value: Any) -> tuple[Any, ...]:
    return value.year, value.month, value.day


def _time_parts(value: Any) -> tuple[Any, ...]:
    return value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold


def _time(*parts: Any) -> dt.time:
    *rest, fold = parts
    return dt.time(*rest, fold=fold)


def _datetime(*parts: Any) -> dt.datetime:
    *rest, fold = parts
    return dt.datetime(*rest, fold=fold)  # noqa: DTZ001 - the zone is among the parts


def _timezone_parts(value: dt.timezone) -> tuple[Any, ...]:
    return tuple(getattr(value, "__getinitargs__")())  # noqa: B009 - the stubs do not know it


def _numpy_scalar(dtype: str, data: bytes) -> Any:
    import numpy as np

    if np.dtype(dtype).hasobject:
        raise TypeError(f"got the dtype {dtype}")
    return np.frombuffer(data, np.dtype(dtype))[0]


def _keys(*keys: Any) -> Any:
    return dict.fromkeys(keys).keys()


def _dict_items(*items: Any) -> Any:
    return dict(items).items()


_TABLE: list[tuple[type, str, Parts, Callable[..., Any]]] = [
    (complex, "complex", lambda v: (v.real, v.imag), complex),
    (range, "range", lambda v: (v.start, v.stop, v.step), range),
    (slice, "slice", lambda v: (v.start, v.stop, v.step), slice),
    (dt.date, "date", _date_parts, dt.date),
    (dt.time, "time", _time_parts, _time),
    (dt.datetime, "datetime", lambda v: _date_parts(v) + _time_parts(v), _datetime),
    (dt.timedelta, "timedelta", lambda v: (v.days, v.seconds, v.microseconds), dt.timedelta),
    (dt.timezone, "timezone", _timezone_parts, dt.timezone),
    (zoneinfo.ZoneInfo, "zone", lambda v: (v.key,), zoneinfo.ZoneInfo),
    (decimal.Decimal, "decimal", lambda v: (str(v),), decimal.Decimal),
    (fractions.Fraction, "fraction", lambda v: (v.numerator, v.denominator), fractions.Fraction),
    (uuid.UUID, "uuid", lambda v: (v.int,), lambda number: uuid.UUID(int=number)),
    (re.Pattern, "pattern", lambda v: (v.pattern, v.flags), re.compile),
    (types.MappingProxyType, "proxy", lambda v: (dict(v),), types.MappingProxyType),
    (type({}.keys()), "keys", tuple, _keys),
    (type({}.items()), "items", tuple, _dict_items),
    *((kind, kind.__name__, lambda v: (str(v),), kind) for kind in (pathlib.PurePosixPath, pathlib.PosixPath)),
    *(
        (kind, kind.__name__, lambda v: (str(v),), kind)
        for kind in (
            ipaddress.IPv4Address,
            ipaddress.IPv6Address,
            ipaddress.IPv4Network,
            ipaddress.IPv6Network,
        )
    ),
]

PARTS: dict[type, tuple[str, Parts]] = {kind: (name, parts) for kind, name, parts, _ in _TABLE}
"""By exact class."""

REBUILD: dict[str, Callable[..., Any]] = {name: build for _, name, _, build in _TABLE} | {"numpy": _numpy_scalar}
"""By name: nothing else can be made of what is received."""


PLAIN = frozenset({int, bool, float, str, bytes, types.NoneType, dict, dt.timedelta, dt.timezone, zoneinfo.ZoneInfo})
"""The exact classes of what a value may be made of: one made of the other side's objects would do as they say."""

OF_ANY = frozenset({"slice", "keys", "items"})
"""Those that are containers, and do nothing with what they hold but compare it."""


def parts_of(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """(name, parts); None if it is no value."""
    known = PARTS.get(type(value))
    if known is not None:
        return known[0], known[1](value)
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value).__module__ != "numpy" or not isinstance(value, numpy.generic):
        return None
    if value.dtype.hasobject or type(value) is not value.dtype.type:
        return None
    return "numpy", (value.dtype.str, value.tobytes())
