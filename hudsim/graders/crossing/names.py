"""What crosses by name: classes that the tests' side knows itself, and all of the standard library the other way."""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import datetime as dt
import decimal
import enum
import fractions
import functools
import http
import importlib
import numbers
import operator
import pathlib
import sys
import types
import uuid
from typing import Any

__all__ = ["BY_PARTS", "REAL_BASES", "SAFE", "safe_name", "standard", "standard_name", "untouchable"]

_ERRORS = [
    "asyncio.QueueEmpty",
    "asyncio.QueueFull",
    "binascii.Error",
    "concurrent.futures.CancelledError",
    "configparser.Error",
    "configparser.NoOptionError",
    "configparser.NoSectionError",
    "configparser.DuplicateSectionError",
    "csv.Error",
    "dataclasses.FrozenInstanceError",
    "decimal.DivisionByZero",
    "decimal.InvalidOperation",
    "decimal.Overflow",
    "email.errors.MessageError",
    "graphlib.CycleError",
    "ipaddress.AddressValueError",
    "ipaddress.NetmaskValueError",
    "json.JSONDecodeError",
    "queue.Empty",
    "queue.Full",
    "re.error",
    "shutil.Error",
    "socket.gaierror",
    "statistics.StatisticsError",
    "struct.error",
    "subprocess.CalledProcessError",
    "subprocess.TimeoutExpired",
    "tokenize.TokenError",
    "tomllib.TOMLDecodeError",
    "urllib.error.URLError",
    "urllib.error.HTTPError",
    "xml.etree.ElementTree.ParseError",
    "zlib.error",
    "zoneinfo.ZoneInfoNotFoundError",
]

_DATA = (
    *(
        object,
        type,
        BaseException,
        int,
        str,
        float,
        bool,
        complex,
        bytes,
        bytearray,
        memoryview,
        list,
        tuple,
        dict,
        set,
        frozenset,
    ),
    *(range, slice, types.NoneType, types.EllipsisType, types.NotImplementedType, types.GeneratorType),
    *(collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque, collections.ChainMap),
    *(dt.date, dt.time, dt.datetime, dt.timedelta, dt.timezone, dt.tzinfo),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, types.SimpleNamespace, types.MappingProxyType),
    *(pathlib.PurePath, pathlib.Path, pathlib.PurePosixPath, pathlib.PosixPath),
)
_ENUMS = (enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag, http.HTTPStatus)
_ABSTRACT = (
    abc.ABC,
    *(getattr(collections.abc, name) for name in collections.abc.__all__ if not name.endswith("View")),
    *(numbers.Number, numbers.Complex, numbers.Real, numbers.Rational, numbers.Integral),
)
_BUILTIN_ERRORS = tuple(
    kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, Exception)
)


def _errors() -> list[type]:
    found = []
    for name in _ERRORS:
        module, _, word = name.rpartition(".")
        kind = getattr(importlib.import_module(module), word, None)
        if isinstance(kind, type):
            found.append(kind)
    return found


_STANDARD_ERRORS = tuple(_errors())

SAFE: dict[tuple[str, str], type] = {
    (kind.__module__, kind.__qualname__): kind
    for kind in (*_DATA, *_ENUMS, *_ABSTRACT, *_BUILTIN_ERRORS, *_STANDARD_ERRORS)
}
"""Classes that the solution may name. None of them runs what it is given."""

REAL_BASES: frozenset[type] = frozenset({*_ABSTRACT, *_BUILTIN_ERRORS, *_STANDARD_ERRORS})
"""Those that the mirror of a class really inherits from: they hold no data of their own but an error's."""


def safe_name(value: Any) -> tuple[str, str] | None:
    """The name under which the tests' side knows this class. None: it does not."""
    if not isinstance(value, type):
        return None
    name = (value.__module__, value.__qualname__)
    return name if SAFE.get(name) is value else None


_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)


def standard_name(value: Any) -> tuple[str, str] | None:
    """The name under which every interpreter has this class or function. None: it has not."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, types.ModuleType):
        module, name = value.__name__, ""
    elif isinstance(value, types.MethodDescriptorType):
        module = value.__objclass__.__module__
    elif not isinstance(value, _NAMED) and type(value).__module__ != "numpy":  # numpy's ufuncs have names too
        return None
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    root = module.partition(".")[0]
    if root not in sys.stdlib_module_names and root != "numpy":
        return None
    try:
        return (module, name) if standard(module, name) is value else None
    except (ImportError, AttributeError):
        return None


def standard(module: str, name: str) -> Any:
    """What has this name. Raises ImportError, AttributeError."""
    return (
        functools.reduce(getattr, name.split("."), importlib.import_module(module))
        if name
        else importlib.import_module(module)
    )


_MACHINERY = (
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.ModuleType,
    types.CellType,
)
_HERE = __name__.rpartition(".")[0]
_RUNNERS = frozenset(
    {"_pytest", "pytest", "pluggy", "unittest.case", "unittest.suite", "unittest.runner", "hypothesis"}
    | {f"{_HERE}.{name}" for name in ("aliases", "codec", "link", "objects", "peer", "tests_side")}
)


def untouchable(value: Any) -> str | None:
    """Why an object of the tests' side must not be lent to the solution. None: it may."""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, _MACHINERY):
        return "object"
    for kind in (value if isinstance(value, type) else type(value)).__mro__:
        module = kind.__module__ or ""
        if module in _RUNNERS or module.partition(".")[0] in _RUNNERS:
            return "object"
    return None


BY_PARTS = {functools.partial, operator.itemgetter, operator.attrgetter, operator.methodcaller}
"""What holds nothing but its arguments: made anew for the solution."""
