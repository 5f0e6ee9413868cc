"""What a mirror has by a name: the other side is asked, or refused, or its fields are compared here."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from hudsim.graders.crossing.dunders import COMPARISONS, DIFFERENCES, OF_SETS, RATIOS, VERDICTS
from hudsim.graders.crossing.errors import CrossingError

__all__ = ["WATCHED", "Asker", "Attribute", "by_call", "by_elements", "by_fields", "by_items", "opaque", "watched"]


_NUMBERS = ("__float__", "__int__", "__index__", "__complex__", "__round__")
_ELEMENTS = ("__iter__", "__getitem__", "__len__", "__contains__")
_OF_BOTH = frozenset({"__and__", "__rand__", "__iand__", "__or__", "__ror__", "__ior__"})
_IN_WORDS = {
    "difference": "__sub__",
    "symmetric_difference": "__xor__",
    "intersection": "__and__",
    "union": "__or__",
    "isdisjoint": "__xor__",
    "issubset": "__sub__",
    "issuperset": "__sub__",
}
"""The methods of sets, and how what is no set is held when it has them."""
_PARTS = frozenset({"numerator", "denominator", "_numerator", "_denominator"})
_RATIO = "as_integer_ratio"
WATCHED = _PARTS | _IN_WORDS.keys() | {_RATIO}
"""The attributes that tell of plain data what no solution may tell: :func:`watched` gives them."""


class Asker(Protocol):
    """What the mirrors need of the peer."""

    def ask(self, what: str, *operands: Any) -> Any:
        """The other side's answer; raises what was raised there."""

    def refuse(self, reason: str, message: str) -> CrossingError:
        """The error to raise; the test that sees it has failed, whatever it does with it."""

    def subclass(self, kind: Any, bases: tuple[type, ...], namespace: dict[str, Any], options: dict[str, Any]) -> None:
        """Make the same class on the other side."""


class Attribute:
    """In a mirror's namespace: what the class of the other side has by this name."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker = asker
        self.name = name
        self.owner: Any = None

    def __get__(self, instance: Any, owner: Any) -> Any:
        if _overridden(owner, self, self.name):  # super() in a class of the tests
            return self._asker.ask("bound", self.owner, self.name, instance, owner)
        return self._asker.ask("get", owner if instance is None else instance, self.name)


def by_call(name: str, asker: Asker, *, trusted: bool = False) -> Any:
    """The other side answers. ``trusted``: also whether an error is swallowed."""

    def asked(self: Any, args: tuple[Any, ...]) -> Any:
        if _overridden(type(self), made, name):  # super() in a class of the tests
            return asker.ask("method", _owner(type(self), made, name), self, name, args, {})
        return asker.ask("dunder", self, name, args)

    def dunder(self: Any, *args: Any, **options: Any) -> Any:
        return asker.ask("call_dunder", self, name, args, options)

    def plain(self: Any, *args: Any) -> Any:
        return asked(self, args)

    def compared(self: Any, other: Any) -> Any:
        if not trusted and not _of_there(other):
            return _of_plain_data(name, asker, asked, self, other)
        return asked(self, (other,))

    def verdict(self: Any, *args: Any) -> Any:
        answer = asked(self, args)
        if answer is NotImplemented or type(answer) is bool or (name == "__hash__" and type(answer) is int):
            return answer
        raise TypeError(f"{name} answered {type(answer).__name__}, expected bool")

    def leave(self: Any, kind: Any, error: Any, traceback: Any) -> bool:
        swallows = asked(self, (kind, error, None))
        if not swallows or (trusted and isinstance(error, Exception) and not isinstance(error, AssertionError)):
            return bool(swallows)
        if error is None:
            return False
        raise asker.refuse("opaque", f"{type(self).__qualname__} of the solution swallows {error!r}") from error

    special = {"__call__": dunder, "__exit__": leave, **dict.fromkeys(DIFFERENCES | RATIOS, compared)}
    made = special.get(name, verdict if name in VERDICTS else plain)
    made.__name__ = made.__qualname__ = name
    return made


def by_elements(name: str) -> Any:
    """As collections.abc makes it, but of the elements that are fetched alone: never of what is said of them."""

    def made(self: Any, other: Any) -> Any:
        if name not in VERDICTS and _of_there(other):
            return getattr(AbstractSet, name)(self, other)  # one of its own class, made over there
        return of_elements(name, self, other)

    made.__name__ = made.__qualname__ = name
    return made


def of_elements(name: str, some: Any, other: Any) -> Any:
    """What a set of the elements of ``some`` would answer."""
    if name == "__contains__":
        return any(one is other or one == other for one in some)
    if not isinstance(other, AbstractSet if name in COMPARISONS else Iterable):
        return NotImplemented
    return getattr(frozenset(some), name)(frozenset(other))


def by_items(name: str) -> Any:
    """``keys`` or ``items`` of a mapping, of what is fetched."""

    def view(self: Any) -> Any:
        return getattr({key: self[key] if name == "items" else None for key in self}, name)()

    view.__name__ = view.__qualname__ = name
    return view


def opaque(name: str, asker: Asker, kind: str) -> Any:
    """Nobody answers, but the elements of a set, and the keys of a mapping."""

    def verdict(self: Any, *args: Any) -> Any:
        if name in OF_SETS and isinstance(self, AbstractSet):
            return of_elements(name, self, *args)
        if name == "__contains__" and isinstance(self, Mapping):
            return of_elements(name, self, *args)
        raise asker.refuse("opaque", f"{name} of a {kind} of the solution")

    verdict.__name__ = verdict.__qualname__ = name
    return verdict


def by_fields(name: str, asker: Asker, fields: tuple[str, ...]) -> Any:
    """As a dataclass makes them: both sides' fields are fetched and compared here."""

    def fetched(self: Any) -> Any:
        return tuple(asker.ask("fields", self, fields))

    def compare(self: Any, other: Any) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return getattr(fetched(self), name)(fetched(other))

    made = (lambda self: hash(fetched(self))) if name == "__hash__" else compare
    made.__name__ = made.__qualname__ = name
    return made


def _of_there(value: Any) -> bool:
    """Whether it is an object of the other side."""
    return any("_mirrored" in vars(base) for base in type(value).__mro__)


def _of_plain_data(name: str, asker: Asker, asked: Callable[[Any, tuple[Any, ...]], Any], self: Any, other: Any) -> Any:
    if name in OF_SETS and isinstance(self, AbstractSet):
        return of_elements(name, self, other)
    return _told(asker, name, self, asked(self, (other,)))


def _told(asker: Asker, name: str, self: Any, answer: Any) -> Any:
    """The answer to an operator of plain data; refused if it says how that compares."""
    if answer is NotImplemented:
        return answer
    if name in DIFFERENCES or not (
        _thing(name, answer) if _of_there(answer) else isinstance(answer, (str, bytes, Mapping))
    ):
        raise asker.refuse("opaque", f"{name} of a {type(self).__qualname__} of the solution and plain data")
    return answer


def _thing(name: str, answer: Any) -> bool:
    """Whether this object of the other side is neither a number nor a set or tuple, nor for ``&`` and ``|`` anything
    else with elements but a mapping: those could be the ones that were asked for.
    """
    words = _NUMBERS if name not in _OF_BOTH or isinstance(answer, Mapping) else (*_NUMBERS, *_ELEMENTS)
    return not _has(answer, words) and not isinstance(answer, (AbstractSet, tuple))


def _has(value: Any, names: Iterable[str]) -> bool:
    """Whether its class has one of these methods: itself, not by the class of classes."""
    return any(vars(base).get(name) is not None for base in type(value).__mro__ for name in names)


def _whole(asker: Asker, name: str, self: Any, parts: Any) -> Any:
    """Parts of a number: else Fraction's own arithmetic, which is in Python, would multiply with objects."""
    if type(parts) is tuple and all(type(part) is int for part in parts):
        return parts
    raise asker.refuse("opaque", f"{name} of a {type(self).__qualname__} of the solution, which is no int")


def watched(self: Any, name: str, asker: Asker) -> Any:
    """The attribute of this name, one of ``WATCHED``, of an object whose class is not opted in."""
    theirs = asker.ask("get", self, name)
    if name in _PARTS:
        return _whole(asker, name, self, (theirs,))[0] if isinstance(self, numbers.Number) else theirs
    if name != _RATIO and not _has(self, _ELEMENTS):
        return theirs  # of an interval, or a clock: no set is compared by it

    def word(*others: Any) -> Any:
        if name == _RATIO:
            return _whole(asker, name, self, theirs(*others))
        if others and all(map(_of_there, others)):
            return theirs(*others)
        if isinstance(self, AbstractSet):
            return getattr(frozenset(self), name)(*map(frozenset, others))
        return _told(asker, _IN_WORDS[name], self, theirs(*others))

    word.__name__ = word.__qualname__ = name
    return word if callable(theirs) else theirs


def _overridden(kind: Any, forwarder: Any, name: str) -> bool:
    """Whether a class of the tests has this name, before the mirror whose forwarder this is."""
    if "_ours" not in vars(kind):
        return False
    found = next((base for base in kind.__mro__ if name in vars(base)), None)
    return found is not None and vars(found)[name] is not forwarder


def _owner(kind: type, forwarder: Any, name: str) -> type:
    found = next(base for base in kind.__mro__ if vars(base).get(name) is forwarder)
    return object if found.__name__ == "Handle" and found.__module__ == __name__ else found
