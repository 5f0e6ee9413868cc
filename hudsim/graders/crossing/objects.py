"""``Objects``: what each side has lent to the other, and how that is written into a message and read from it."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

from hudsim.graders.crossing.codec import Decoder, Encoder, GarbledError
from hudsim.graders.crossing.describe import describe_class, describe_function, is_named_tuple, is_whole_enum
from hudsim.graders.crossing.errors import SolutionRaised
from hudsim.graders.crossing.forwarders import Asker
from hudsim.graders.crossing.functions import stand_in_function
from hudsim.graders.crossing.mirrors import Mirrors, MirrorType
from hudsim.graders.crossing.names import REAL_BASES
from hudsim.graders.crossing.raised import args_of, make_error, state_of

__all__ = ["Objects", "Side"]

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
_ASYNC = (types.CoroutineType, types.AsyncGeneratorType)


class Side(Protocol):
    """What the two sides do differently."""

    def name(self, value: Any) -> tuple[str, str] | None:
        """By which the other side has this object itself. None: it has not."""

    def named(self, module: str, name: str) -> Any:
        """What the other side means. Raises LookupError, ImportError, AttributeError."""

    def forbids(self, value: Any) -> str | None:
        """Why this object must not be lent: a reason of :class:`CannotCross`. None: it may."""

    def remake(self, value: Any) -> tuple[Any, tuple[Any, ...], tuple[tuple[str, Any], ...]] | None:
        """What to call with what to have the same object there. None: it is lent."""

    def make(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call it. Raises LookupError where nothing is made so."""

    def public(self, value: Any, name: str) -> Any:
        """The attribute that the other side is given. Raises AttributeError."""

    def raw(self, kind: type, name: str) -> bool:
        """Whether the other side may name what this class held under this name when it was described."""

    def trusts(self, description: dict[str, Any]) -> bool:
        """Whether the verdicts of this class of the other side are taken."""

    def module(self, name: str, package: bool) -> types.ModuleType:
        """A module of the other side."""


class _Lent(NamedTuple):
    value: Any
    key: Any


class _ClassOf:
    """Stands for the class of an object that is lent: it says what the object is, and is not handed over itself."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


class Objects:
    """Of one side. An object is lent until its stand-in on the other side is gone, a class for good."""

    def __init__(self, asker: Asker, side: Side) -> None:
        self._asker = asker
        self._side = side
        self.mirrors = Mirrors(asker, side.trusts)
        self._lent: dict[int, _Lent] = {}
        self._numbers: dict[Any, int] = {}  # key -> number
        self._next = 1
        self._handed: set[int] = set()  # the numbers of what was lent itself, not as the class of something
        self._described: set[int] = set()
        self._originals: dict[int, dict[str, Any]] = {}
        """By the number of a class: what it held when it was described, that a patch can be taken back."""
        self._stand_ins: dict[int, Callable[[], Any]] = {}  # number -> what gives it, or None
        self._borrowed: dict[int, int] = {}  # id of a stand-in -> number
        self._told: dict[int, Any] = {}  # number -> what was said of it
        self._gone: set[int] = set()
        self._adopting: Any = None  # the class of the tests that the next new class is

    # The table ------------------------------------------------------------------------------------------------------

    def lent(self, value: Any) -> bool:
        """Whether the other side was given this very object."""
        return self._numbers.get(_key(value)) in self._handed

    def described(self, kind: Any) -> bool:
        """Whether the other side knows this class: itself, or of an object that was lent."""
        return _key(kind) in self._numbers

    def returned(self) -> tuple[int, ...]:
        """The numbers of those that are not needed here any more: to be told once."""
        gone, self._gone = self._gone, set()
        told = tuple(number for number in gone if number not in self._stand_ins)
        for number in told:
            self._told.pop(number, None)
        return told

    def forget(self, number: int) -> None:
        """The other side needs it no more."""
        lent = self._lent.pop(number, None)
        if lent is not None:
            self._numbers.pop(lent.key, None)
            self._described.discard(number)
            self._handed.discard(number)

    @contextlib.contextmanager
    def adopting(self, kind: Any) -> Iterator[None]:
        """The class that the other side answers with is this one."""
        self._adopting = kind
        try:
            yield
        finally:
            self._adopting = None

    def can_be_base(self, kind: type) -> bool:
        """Whether the other side has this class, and its instances live there."""
        return issubclass(kind, self.mirrors.handle) if id(kind) in self._borrowed else kind in REAL_BASES

    def _lend(self, value: Any, *, handed: bool = True) -> int:
        key = _key(value)
        number = self._numbers.get(key)
        if number is None:
            number = self._next
            self._next += 1
            self._numbers[key] = number
            self._lent[number] = _Lent(value, key)
        if handed:
            self._handed.add(number)
        return number

    def _borrow(self, number: int, stand_in: Any, *, for_good: bool = False) -> Any:
        identity = id(stand_in)
        self._borrowed[identity] = number
        if for_good:
            self._stand_ins[number] = lambda: stand_in
            return stand_in

        def over(_: Any) -> None:
            self._borrowed.pop(identity, None)
            if self._stand_ins.get(number) is reference:
                del self._stand_ins[number]
                self._gone.add(number)

        reference = weakref.ref(stand_in, over)
        self._stand_ins[number] = reference
        return stand_in

    # Writing --------------------------------------------------------------------------------------------------------

    def write(self, encoder: Encoder, value: Any) -> None:
        """For :class:`Encoder`. Raises :class:`CannotCross`."""
        out = encoder.out
        number = self._borrowed.get(id(value))
        if number is not None:
            out.append(b"u" + number.to_bytes(8, "big"))
        elif (original := self.mirrors.originals.get(id(value))) is not None:
            self._compound(encoder, b"O", original)
        elif isinstance(value, types.MethodType) and id(value.__func__) in self.mirrors.originals:
            self._compound(encoder, b"O", (value.__self__, value.__name__))
        elif isinstance(value, (type, _ClassOf)):
            self._class(encoder, value)
        elif isinstance(value, enum.Enum) and is_whole_enum(type(value)):
            name = value.name if type(value).__members__.get(value.name or "") is value else None
            self._compound(encoder, b"E", (_ClassOf(type(value)), name, None if name else value.value))
        elif (known := self._side.name(value)) is not None:
            self._compound(encoder, b"g", known)
        elif (parts := self._side.remake(value)) is not None:
            self._compound(encoder, b"G", parts)
        elif isinstance(value, tuple) and is_named_tuple(type(value)) and not getattr(value, "__dict__", None):
            self._compound(encoder, b"n", (_ClassOf(type(value)), tuple(value)))
        else:
            self._refuse(value)
            self._object(encoder, value)

    def _object(self, encoder: Encoder, value: Any) -> None:
        number = self._lend(value)
        mark = number.to_bytes(8, "big")
        if isinstance(value, BaseException):
            encoder.out.append(b"x" + mark)
            value.__traceback__ = None  # its frames would keep what the call was given
            notes = tuple(str(note) for note in getattr(value, "__notes__", ()))
            raised = (value.__cause__, value.__suppress_context__)
            known = self._side.name(type(value)) is not None  # the other side cannot ask for its attributes then
            state = state_of(value) if known else None
            self._parts(encoder, (_ClassOf(type(value)), args_of(value), raised, notes, state))
        elif isinstance(value, types.ModuleType):
            encoder.out.append(b"P" + mark)
            self._parts(encoder, (value.__name__, hasattr(value, "__path__")))
        elif isinstance(value, _FUNCTIONS) and not _annotated(value):
            encoder.out.append(b"c" + mark)
            said = (*describe_function(value), vars(value).get("__wrapped__") if hasattr(value, "__dict__") else None)
            self._parts(encoder, None if number in self._described else said)
            encoder.described.append(number)
        else:
            encoder.out.append(b"h" + mark)
            self._described_class(encoder, type(value), handed=False)

    def _class(self, encoder: Encoder, given: type | _ClassOf) -> None:
        kind = given.kind if isinstance(given, _ClassOf) else given
        borrowed = self._borrowed.get(id(kind))
        if borrowed is not None:
            encoder.out.append(b"u" + borrowed.to_bytes(8, "big"))
            return
        known = self._side.name(kind)
        if known is not None:
            self._compound(encoder, b"g", known)
            return
        if isinstance(kind, MirrorType):
            raise self._asker.refuse("subclass", f"got {kind.__qualname__}, a class of the tests")
        self._refuse(kind)
        self._described_class(encoder, kind, handed=kind is given)

    def _described_class(self, encoder: Encoder, kind: type, *, handed: bool) -> None:
        """Also of a class that the other side has itself: an object that is lent is an instance of a mirror."""
        number = self._lend(kind, handed=handed)
        encoder.out.append(b"K" + number.to_bytes(8, "big"))
        if number in self._described or number in encoder.described:
            encoder.out.append(b"N")
        else:
            encoder.described.append(number)
            self._originals[number] = dict(vars(kind))
            description = dict(describe_class(kind, named=self._side.name(kind) is not None))
            description["bases"] = tuple(map(_ClassOf, description["bases"]))
            self._parts(encoder, tuple(description.items()))

    def _refuse(self, value: Any) -> None:
        if isinstance(value, _ASYNC) or inspect.isawaitable(value):
            if isinstance(value, types.CoroutineType):
                value.close()
            raise self._asker.refuse("async", f"got a {type(value).__name__}")
        reason = self._side.forbids(value)
        if reason is not None:
            raise self._asker.refuse(reason, f"got {type(value).__module__}.{type(value).__qualname__}")

    def sent(self, encoder: Encoder) -> None:
        """The message is on its way: what it describes need not be described again."""
        self._described.update(encoder.described)

    def _compound(self, encoder: Encoder, tag: bytes, parts: Any) -> None:
        encoder.out.append(tag)
        self._parts(encoder, parts)

    def _parts(self, encoder: Encoder, parts: Any) -> None:
        encoder.keep.append(parts)
        encoder.value(parts)

    # Reading --------------------------------------------------------------------------------------------------------

    def read(self, decoder: Decoder, tag: int) -> Any:
        """For :class:`Decoder`. Raises :class:`GarbledError`."""
        way = self._WAYS.get(tag)
        if way is None:
            raise GarbledError(f"got the tag {tag}")
        return way(self, decoder)

    def _read_own(self, decoder: Decoder) -> Any:
        number = decoder.number()
        if number not in self._lent:
            raise GarbledError(f"got the object {number}, which was not lent")
        return self._lent[number].value

    def _read_original(self, decoder: Decoder) -> Any:
        owner, name = self._tuple(decoder, 2)
        mine = self.lent(owner) or self.described(owner if isinstance(owner, type) else type(owner))
        if not (mine and type(name) is str and (not isinstance(owner, type) or self._side.raw(owner, name))):
            raise GarbledError("got an attribute of what was not lent")
        if isinstance(owner, type):
            found = self._originals.get(self._numbers.get(id(owner), 0), {}).get(name)
        else:
            found = decoder.attempt(lambda: self._side.public(owner, name))
        if self._side.forbids(found) is not None:
            raise GarbledError("got an attribute that is never lent")
        return found

    def _read_class(self, decoder: Decoder) -> Any:
        number, description = decoder.number(), decoder.value()
        known = self._stand_ins.get(number)
        if known is not None:
            return known()
        if type(description) is not tuple:
            raise GarbledError("got a class without a description")
        if self._adopting is not None and ("qualname", self._adopting.__qualname__) in description:
            adopted, self._adopting = self._adopting, None
            return self._borrow(number, adopted, for_good=True)
        try:
            made = self.mirrors.make(dict(description))
        except (TypeError, ValueError) as error:
            raise GarbledError(f"got a class that cannot be: {error}") from None
        return self._borrow(number, made, for_good=True)

    def _read_named(self, decoder: Decoder) -> Any:
        module, name = self._tuple(decoder, 2)
        try:
            return self._side.named(str(module), str(name))
        except (LookupError, ImportError, AttributeError) as error:
            raise GarbledError(f"got {module}.{name}, which is not known here: {error}") from None

    def _read_remade(self, decoder: Decoder) -> Any:
        function, args, options = self._tuple(decoder, 3)
        return decoder.attempt(lambda: self._side.make(function, args, dict(options)))

    def _read_member(self, decoder: Decoder) -> Any:
        kind, name, value = self._tuple(decoder, 3)
        if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
            raise GarbledError("got a member of what is no enum")
        if name is None and not issubclass(kind, enum.Flag):
            return decoder.attempt(lambda: _no_member(kind))
        return decoder.attempt(lambda: kind(value) if name is None else kind[name])

    def _read_row(self, decoder: Decoder) -> Any:
        kind, values = self._tuple(decoder, 2)
        if not (isinstance(kind, type) and issubclass(kind, tuple) and type(values) is tuple):
            raise GarbledError("got a named tuple that is none")
        return tuple.__new__(kind, values)

    def _read_error(self, decoder: Decoder) -> Any:
        number = decoder.number()
        kind, args, raised, notes, state = self._tuple(decoder, 5)
        known = self._stand_ins.get(number)
        error = known() if known is not None else None
        if error is None:
            error = decoder.attempt(lambda: make_error(kind, args))
            if error is None:
                return SolutionRaised(f"the solution raised an error that cannot be: {args!r}")
            if isinstance(kind, MirrorType):
                self._borrow(number, error)
            for name, word in state or ():
                if isinstance(name, str) and not name.startswith("__"):
                    decoder.attempt(functools.partial(setattr, error, name, word))
        if isinstance(raised, tuple) and isinstance(raised[0], BaseException):
            error.__cause__ = raised[0]
        if notes:
            error.__notes__ = [str(note) for note in notes]
        return error

    def _read_module(self, decoder: Decoder) -> Any:
        number = decoder.number()
        name, package = self._tuple(decoder, 2)
        known = self._stand_ins.get(number)
        if known is not None:
            return known()
        module = self._side.module(str(name), bool(package))
        return self._borrow(number, module, for_good=True)

    def _read_function(self, decoder: Decoder) -> Any:
        number, said = decoder.number(), decoder.value()
        if said is not None:
            self._told[number] = said
        known = self._stand_ins.get(number)
        stand_in = known() if known is not None else None
        if stand_in is None:
            said = self._told.get(number)
            stand_in = self._borrow(number, stand_in_function(self._asker, said))
        return stand_in

    def _read_instance(self, decoder: Decoder) -> Any:
        number, tag = decoder.number(), decoder.take(1)
        if tag != b"K":
            raise GarbledError("got an object without a class")
        kind = self._read_class(decoder)
        known = self._stand_ins.get(number)
        stand_in = known() if known is not None else None
        if stand_in is None:
            if not (isinstance(kind, MirrorType) and issubclass(kind, self.mirrors.handle)):
                raise GarbledError("got an object of no class of the other side")
            stand_in = self._borrow(number, kind.__new__(kind))
        return stand_in

    def _tuple(self, decoder: Decoder, size: int) -> tuple[Any, ...]:
        parts = decoder.value()
        if type(parts) is not tuple or len(parts) != size:
            raise GarbledError(f"got {type(parts).__name__}, expected {size} parts")
        return parts

    _WAYS: ClassVar[dict[int, Callable[[Objects, Decoder], Any]]] = {
        ord("u"): _read_own,
        ord("O"): _read_original,
        ord("K"): _read_class,
        ord("g"): _read_named,
        ord("G"): _read_remade,
        ord("E"): _read_member,
        ord("n"): _read_row,
        ord("x"): _read_error,
        ord("P"): _read_module,
        ord("c"): _read_function,
        ord("h"): _read_instance,
    }


def _key(value: Any) -> Any:
    """A bound method is another object each time it is looked up."""
    if isinstance(value, types.MethodType):
        return ("method", id(value.__self__), id(value.__func__))
    return id(value)


def _no_member(kind: type) -> Any:
    raise ValueError(f"got what is no member of {kind.__qualname__}")


def _annotated(function: Any) -> bool:
    """Whether it has attributes of its own, that a plain function could not show as they change."""
    return bool(getattr(function, "__dict__", None)) and set(vars(function)) != {"__wrapped__"}
