"""``Enums``: real enums with the members of the other side's. What is no member is asked for there."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from hudsim.graders.crossing.codec import GarbledError
from hudsim.graders.crossing.describe import DATA_OF_ENUMS
from hudsim.graders.crossing.dunders import BY_CALL, OF_DESCRIPTORS, OWN, VERDICTS, sound
from hudsim.graders.crossing.forwarders import WATCHED, Asker, by_call, opaque, watched

__all__ = ["Enums"]

_TEXTS = frozenset({"__str__", "__repr__", "__format__"})


class Enums:
    """Makes them.

    trusts
        Given a description, whether the verdicts of that class are taken.
    method
        Makes the method of this name, signature and description.
    """

    def __init__(
        self,
        asker: Asker,
        trusts: Callable[[dict[str, Any]], bool],
        method: Callable[[str, Any, dict[str, Any]], Any],
    ) -> None:
        self._asker = asker
        self._trusts = trusts
        self._method = method
        self._type = _type_of_enums(asker)

    def make(self, name: str, description: dict[str, Any]) -> type:
        """Raises :class:`GarbledError`, TypeError, ValueError."""
        asker, bases = self._asker, tuple(description["bases"])
        if not all(base in DATA_OF_ENUMS or (isinstance(base, enum.EnumType) and not list(base)) for base in bases):
            raise GarbledError("got an enum that is built on what is not known here")
        namespace: Any = self._type.__prepare__(name, bases)
        namespace["__module__"], namespace["__qualname__"] = str(description["module"]), str(description["qualname"])
        namespace["__doc__"] = description["doc"]
        members, trusted = dict(description["members"]), self._trusts(description)
        for word, signature in description["methods"]:
            if sound(word) and word not in members and (trusted or word not in WATCHED):
                namespace[word] = self._method(word, signature, description)

        def __getattr__(member: Any, word: str) -> Any:  # noqa: N807
            if word.startswith("_"):
                message = f"{type(member).__name__!r} object has no attribute {word!r}"
                raise AttributeError(message, name=word, obj=member)
            return asker.ask("get", member, word) if trusted or word not in WATCHED else watched(member, word, asker)

        namespace["__getattr__"] = __getattr__
        for word, made in self._dunders(bases, description).items():
            namespace[word] = made
        if "_missing_" in description["others"] and not any(issubclass(base, enum.Flag) for base in bases):
            namespace["_missing_"] = classmethod(lambda cls, value: asker.ask("call", cls, (value,), {}))
        for word, value in members.items():
            if not _can_be_a_member(word) or word in namespace:
                raise GarbledError("got a member of an enum with a name that none can have")
            namespace[word] = enum.member(value)  # a function too
        made = self._type(name, bases, namespace)
        type.__setattr__(made, "_mirrored", True)
        return made

    def _dunders(self, bases: tuple[type, ...], description: dict[str, Any]) -> dict[str, Any]:
        """What its own classes say beside their members. A member is equal to itself, whatever they say."""
        asker, trusted = self._asker, self._trusts(description)
        a_number_or_text = any(issubclass(base, DATA_OF_ENUMS) for base in bases)
        made: dict[str, Any] = {}
        for word in description["own"]:
            if word in _TEXTS or (word in BY_CALL - OF_DESCRIPTORS and not a_number_or_text):
                made[word] = by_call(word, asker)
            elif word in VERDICTS - {"__hash__"} and not a_number_or_text:
                answer = by_call(word, asker, trusted=True) if trusted else opaque(word, asker, _name(description))
                made[word] = _or_itself(answer) if word == "__eq__" else answer
                made["__hash__"] = enum.Enum.__hash__
        return made


def _type_of_enums(asker: Asker) -> type[enum.EnumType]:
    class MirrorEnum(enum.EnumType):
        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)
            return asker.ask("get", cls, name)

    return MirrorEnum


def _can_be_a_member(name: Any) -> bool:
    """Whether the name does nothing; it need be no identifier: Enum("Sign", [("+", 1)])."""
    return type(name) is str and (name == "_" or name[:1] != "_" or name[-1:] != "_") and name not in OWN


def _or_itself(answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return True if self is other else answer(self, other)

    return __eq__


def _name(description: dict[str, Any]) -> str:
    return f"{description['module']}.{description['qualname']}"
