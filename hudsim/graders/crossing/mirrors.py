"""``Mirrors``: local classes for those of the other side, so that ``isinstance``, ``except`` and names mean the same.

An instance of a mirror holds nothing: what is done to it is asked of the other side. Named tuples and members of an
enum are whole here; an exception is a real one.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from hudsim.graders.crossing.codec import GarbledError
from hudsim.graders.crossing.dunders import BY_CALL, COMPARISONS, GETTABLE, OF_SETS, VERDICTS, sound
from hudsim.graders.crossing.enums import Enums
from hudsim.graders.crossing.forwarders import (
    WATCHED,
    Asker,
    Attribute,
    by_call,
    by_elements,
    by_fields,
    by_items,
    opaque,
    watched,
)
from hudsim.graders.crossing.functions import signature_of
from hudsim.graders.crossing.names import REAL_BASES

__all__ = ["MirrorType", "Mirrors"]

_LOCAL = frozenset(
    {"__traceback__", "__cause__", "__context__", "__suppress_context__", "__notes__", "args", "__class__"}
)
_LOOKED_AT = WATCHED | {"__doc__", "__module__"}
_BY_FIELDS = frozenset({*COMPARISONS, "__hash__"})
_UNLIKE = {collections.Counter: dict}
"""What resembles something simpler: the class's own operators, in Python, would take what looks like it apart."""


class MirrorType(abc.ABCMeta):
    """The class of mirrors: what is asked of a class is asked of the other side's.

    A class of the tests that inherits from a mirror is made over there too, with the tests' functions for its methods.
    """

    _asker: Asker

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        kind = super().__new__(mcs, name, bases, namespace)
        type.__setattr__(kind, "__abstractmethods__", frozenset())
        if "_mirrored" not in namespace:
            type.__setattr__(kind, "_ours", True)
            kind._asker.subclass(kind, bases, namespace, options)
        return kind

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return cls._asker.ask("call", cls, args, options)

    def __getattr__(cls, name: str) -> Any:
        if name == "__signature__" and (made := signature_of(cls._asker.ask("signature", cls))) is not None:
            return made
        if name.startswith("__") and name.endswith("__") and name not in GETTABLE:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)
        return cls._asker.ask("get", cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        ours = "_ours" in vars(cls)
        if ours or name.startswith(("__", "_abc_")):
            super().__setattr__(name, value)
        if not name.startswith(("__", "_abc_")) or (ours and isinstance(value, types.FunctionType)):
            cls._asker.ask("set", cls, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._asker.ask("del", cls, name)

    def __getitem__(cls, key: Any) -> Any:
        return cls._asker.ask("dunder", cls, "__class_getitem__", (key,))

    def __dir__(cls) -> list[str]:
        return list(cls._asker.ask("dir", cls))


class Mirrors:
    """Makes them.

    trusts
        Given a description, whether the verdicts of that class are taken.
    """

    def __init__(self, asker: Asker, trusts: Callable[[dict[str, Any]], bool]) -> None:
        self._asker = asker
        self._trusts = trusts
        self._enums = Enums(asker, trusts, self._method)
        self.handle = _handle(asker)
        self.originals: dict[int, tuple[Any, str]] = {}
        """By id: whose attribute of which name a method of a mirror stands for."""
        self._keep: list[Any] = []
        self._owners: dict[int, list[Any]] = {}  # id of a method whose class is being made

    def make(self, description: dict[str, Any]) -> type:
        """The mirror of a class. Raises :class:`GarbledError`."""
        try:
            name, shape, bases = str(description["name"]), description["shape"], description["bases"]
            if not all(isinstance(base, type) for base in bases):
                raise GarbledError("got a base that is no class")
            if shape == "enum":
                return self._finish(self._enums.make(name, description), description)
            namespace = self._namespace(description)
            if shape == "tuple":
                names = [str(field) for field in description["fields"]]
                fields_of = collections.namedtuple(name if name.isidentifier() else "Row", names)  # type: ignore[misc]  # noqa: PYI024
                return self._finish(MirrorType(name, (fields_of,), namespace), description)
            kept = self._bases(bases, trusted=self._trusts(description))
            return self._finish(MirrorType(name, kept, namespace), description)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GarbledError(f"got a class that cannot be: {error}") from None

    def _bases(self, bases: tuple[type, ...], *, trusted: bool) -> tuple[type, ...]:
        kept = tuple(base for base in bases if isinstance(base, MirrorType) or base in REAL_BASES)
        if not trusted:  # their arithmetic would run here, of what is asked over there
            kept = tuple(base for base in kept if base.__module__ != "numbers")
        if BaseException in bases:
            kept = (*kept, Exception)  # never what no ``except Exception`` catches
        if not any(isinstance(base, MirrorType) and issubclass(base, self.handle) for base in kept):
            kept = (self.handle, *kept)
        return kept

    def _finish(self, made: Any, description: dict[str, Any]) -> type:
        for value in vars(made).values():
            if isinstance(value, Attribute):
                value.owner = made
                self.originals[id(value)] = (made, value.name)
            elif isinstance(value, types.FunctionType) and (owner := self._owners.pop(id(value), None)) is not None:
                owner.append(made)
                self.originals[id(value)] = (made, value.__name__)
            self._keep.append(value)
        return made  # type: ignore[no-any-return]

    def _resembled(self, description: dict[str, Any]) -> Any:
        """For ``__class__``: isinstance(x, dict) holds where the class of the other side inherits from dict."""
        real = [base for base in description["bases"] if not isinstance(base, MirrorType) and base not in REAL_BASES]
        real = [_UNLIKE.get(base, base) for base in real]
        seen: list[type] = []

        def resembled(self: Any) -> type:
            if not seen:
                kind: Any = type(self)
                try:
                    shadow: Any = type.__new__(
                        MirrorType, kind.__name__, (kind, real[0]), {"__module__": kind.__module__}
                    )
                except TypeError:  # nothing can inherit from it
                    shadow = kind
                seen.append(real[0] if description["named"] else shadow)
            return seen[0]

        return property(resembled) if real else None

    def _namespace(self, description: dict[str, Any]) -> dict[str, Any]:
        asker = self._asker
        namespace: dict[str, Any] = {
            "__module__": str(description["module"]),
            "__qualname__": str(description["qualname"]),
            "__doc__": description["doc"],
            "_asker": asker,
            "_mirrored": True,
            "_trusted": self._trusts(description),
        }
        an_error = any(isinstance(base, type) and issubclass(base, BaseException) for base in description["bases"])
        if description["shape"] != "tuple" and not an_error:
            namespace["__slots__"] = ()
        if description["shape"] in {"plain", "dataclass"} and (resembled := self._resembled(description)) is not None:
            namespace["__class__"] = resembled
        namespace |= {name: Attribute(asker, name) for name in description["others"] if sound(name)}
        for name, signature in description["methods"]:
            if sound(name) or name == "__init__":
                namespace[name] = self._method(name, signature, description)
        namespace |= _by_contents(description) | self._dunders(description)
        namespace |= {name: None for name in description["absent"] if name in BY_CALL or name in VERDICTS}
        if description["shape"] == "tuple" and not namespace["_trusted"]:  # no handle, whose every attribute is seen
            for name in WATCHED & namespace.keys():
                namespace[name] = property(functools.partial(watched, name=name, asker=asker))
        if description["shape"] == "dataclass":
            namespace["__dataclass_fields__"] = _fields(description["fields"])
            namespace["__match_args__"] = tuple(
                field[0] for field in description["fields"] if field[1] and not field[4]
            )
        return namespace

    def _dunders(self, description: dict[str, Any]) -> dict[str, Any]:
        asker, made = self._asker, {}
        trusted = self._trusts(description)
        described = description["fields"] if description["shape"] == "dataclass" else ()
        fields = tuple(str(field[0]) for field in described if field[3])
        for name in description["dunders"]:
            if name[:1] == "=" and name[1:] in _BY_FIELDS:
                made[name[1:]] = by_fields(name[1:], asker, fields)
            elif name in BY_CALL or (name in VERDICTS and trusted):
                made[name] = by_call(name, asker, trusted=trusted)
            elif name in VERDICTS:
                made[name] = opaque(name, asker, f"{description['module']}.{description['qualname']}")
        return made

    def _method(self, name: str, signature: Any, description: dict[str, Any]) -> Any:
        asker = self._asker

        def method(self: Any, /, *args: Any, **options: Any) -> Any:
            return asker.ask("method", owner[0], self, name, args, options)

        owner: list[Any] = []  # the class that is being made
        method.__name__, method.__qualname__ = name, f"{description['qualname']}.{name}"
        method.__module__ = str(description["module"])
        self._owners[id(method)] = owner
        made = signature_of(signature)
        if made is not None:
            method.__signature__ = made  # type: ignore[attr-defined]
        return method


def _believed(kind: type) -> bool:
    """Whether it is a class of the tests, or opted in."""
    said = next(vars(base) for base in kind.__mro__ if vars(base).keys() & {"_ours", "_trusted"})
    return "_ours" in said or bool(said["_trusted"])


def _handle(asker: Asker) -> type:
    """The base of all mirrors whose instances live on the other side."""

    def look(self: Any, name: str) -> Any:
        if name not in _LOOKED_AT:
            return object.__getattribute__(self, name)
        if name in WATCHED:
            return object.__getattribute__(self, name) if _believed(type(self)) else watched(self, name, asker)
        return asker.ask("get", self, name)  # the class has them here, and the object may have others there

    def get(self: Any, name: str) -> Any:
        if name == "__signature__" and (known := signature_of(asker.ask("signature", self))) is not None:
            return known
        if name.startswith("__") and name.endswith("__") and name not in GETTABLE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return asker.ask("get", self, name)

    def put(self: Any, name: str, value: Any) -> None:
        if name in _LOCAL:
            object.__setattr__(self, name, value)
        else:
            asker.ask("set", self, name, value)

    def remove(self: Any, name: str) -> None:
        if name in _LOCAL:
            object.__delattr__(self, name)
        else:
            asker.ask("del", self, name)

    def reduce(self: Any, protocol: Any = None) -> Any:
        raise asker.refuse("copy", f"got a {type(self).__qualname__} of the other side to pickle")

    namespace = {
        "__slots__": ("__weakref__",),
        "_asker": asker,
        "_mirrored": True,
        "_trusted": False,
        "__getattribute__": look,
        "__getattr__": get,
        "__setattr__": put,
        "__delattr__": remove,
        "__dir__": lambda self: asker.ask("dir", self),
        "__repr__": by_call("__repr__", asker),
        "__str__": by_call("__str__", asker),
        "__format__": by_call("__format__", asker),
        "__reduce_ex__": reduce,
        "__reduce__": reduce,
        "__copy__": lambda self: asker.ask("copy", self),
        "__deepcopy__": lambda self, memo: asker.ask("deepcopy", self),
    }
    return MirrorType("Handle", (), {**namespace, "__module__": by_call.__module__})


def _by_contents(description: dict[str, Any]) -> dict[str, Any]:
    """What the abstract classes would answer of what the object says of its length."""
    kinds = [base for base in description["bases"] if isinstance(base, type) and base in REAL_BASES]
    if any(issubclass(kind, AbstractSet) for kind in kinds):
        return {name: by_elements(name) for name in OF_SETS} | {"__hash__": None}
    if any(issubclass(kind, Mapping) for kind in kinds):
        own = {name for name, _ in description["methods"]} | set(description["others"])
        own |= {name for base in description["bases"] if isinstance(base, MirrorType) for name in _names_of(base)}
        return {"__contains__": by_elements("__contains__")} | {
            name: by_items(name) for name in ("keys", "items") if name not in own
        }
    return {}


def _names_of(mirror: type) -> set[str]:
    """What its class and those it inherits from have on the other side."""
    return {name for base in mirror.__mro__ if isinstance(base, MirrorType) for name in vars(base)}


def _fields(described: Any) -> dict[str, Any]:
    words = [
        (str(name), object, dataclasses.field(init=init, repr=shown, compare=compared, kw_only=by_name))
        for name, init, shown, compared, by_name in described
    ]
    made = dataclasses.make_dataclass("Fields", words, init=False, repr=False, eq=False)
    return dict(made.__dataclass_fields__)  # type: ignore[attr-defined]
