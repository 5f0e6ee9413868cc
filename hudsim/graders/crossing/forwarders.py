"""What a mirror has by a name: the other side is asked, or refused, or its fields are compared here."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from hudsim.graders.crossing.dunders import DIFFERENCES, VERDICTS
from hudsim.graders.crossing.errors import CrossingError

__all__ = ["Asker", "Attribute", "by_call", "by_elements", "by_fields", "by_items", "opaque"]


_MEASURES = ("__abs__", "__bool__", "__float__", "__int__", "__index__", "__complex__", "__len__", "__round__")


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

    def difference(self: Any, *args: Any) -> Any:
        answer = asked(self, args)
        if answer is not NotImplemented and not trusted and not all(map(_of_there, args)) and _measure(answer):
            raise asker.refuse("opaque", f"{name} of a {type(self).__qualname__} of the solution and plain data")
        return answer

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

    special = {"__call__": dunder, "__exit__": leave, **dict.fromkeys(DIFFERENCES, difference)}
    made = special.get(name, verdict if name in VERDICTS else plain)
    made.__name__ = made.__qualname__ = name
    return made


def by_elements(name: str) -> Any:
    """As collections.abc makes them, but of the elements that are fetched alone: never of a length that is said."""

    def compare(self: Any, other: Any) -> Any:
        if not isinstance(other, AbstractSet):
            return NotImplemented
        return getattr(frozenset(self), name)(frozenset(other))

    def contains(self: Any, value: Any) -> bool:
        return any(one is value or one == value for one in self)

    made = contains if name == "__contains__" else compare
    made.__name__ = made.__qualname__ = name
    return made


def by_items(name: str) -> Any:
    """``keys`` or ``items`` of a mapping, of what is fetched."""

    def view(self: Any) -> Any:
        return getattr({key: self[key] if name == "items" else None for key in self}, name)()

    view.__name__ = view.__qualname__ = name
    return view


def opaque(name: str, asker: Asker, kind: str) -> Any:
    """Nobody answers."""

    def verdict(self: Any, *args: Any) -> Any:
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


def _measure(answer: Any) -> bool:
    """Whether a test can take it for a distance: plain data, or what has a size or an order."""
    return not _of_there(answer) or any(getattr(type(answer), name, None) is not None for name in _MEASURES)


def _overridden(kind: Any, forwarder: Any, name: str) -> bool:
    """Whether a class of the tests has this name, before the mirror whose forwarder this is."""
    if "_ours" not in vars(kind):
        return False
    found = next((base for base in kind.__mro__ if name in vars(base)), None)
    return found is not None and vars(found)[name] is not forwarder


def _owner(kind: type, forwarder: Any, name: str) -> type:
    found = next(base for base in kind.__mro__ if vars(base).get(name) is forwarder)
    return object if found.__name__ == "Handle" and found.__module__ == __name__ else found
