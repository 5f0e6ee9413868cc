"""``Peer``: one side of the conversation. The sides take turns; a call may call back before it is answered."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any, Protocol

from hudsim.graders.crossing.aliases import Aliases, held
from hudsim.graders.crossing.codec import Decoder, Encoder, GarbledError
from hudsim.graders.crossing.errors import CannotCross, CrossingError, OpaqueValue, SolutionGone, SolutionRaised
from hudsim.graders.crossing.link import Link
from hudsim.graders.crossing.objects import Objects
from hudsim.graders.crossing.objects import Side as ObjectsSide
from hudsim.graders.crossing.permits import Given, replaces

__all__ = ["Interrupted", "Peer", "Side"]

_REQUEST, _VALUE, _ERROR, _ABORT = 1, 2, 3, 4
_SHARE = struct.Struct(">Iq")  # how many containers of this message are shared from now on, the first one's number
_NO_PART = frozenset({"__classcell__", "__dict__", "__weakref__", "__static_attributes__", "__firstlineno__"})
_PLACE = struct.Struct(">I")


class Interrupted(BaseException):
    """The test that called is being ended: unwinds the solution's frames."""


class Side(ObjectsSide, Protocol):
    """What the two sides do differently."""

    lends: bool
    """Whether this is the tests' side."""

    def permits(self, what: str, operands: tuple[Any, ...], given: Given) -> str | None:
        """Why this must not be done here for the other side: a reason of :class:`CannotCross`. None: it may."""

    def said(self) -> tuple[tuple[str, Any], ...]:
        """What the solution printed and warned of since last asked: (way, what) …"""

    def show(self, said: tuple[tuple[str, Any], ...]) -> None:
        """The other side said this. May raise: a warning can be an error."""


class Peer:
    """Over a link.

    operations
        What the other side can ask for.
    troubles
        What was refused to a test since it began. A test with troubles has failed, whatever it caught.
    """

    def __init__(self, link: Link, side: Side, operations: dict[str, Callable[..., Any]]) -> None:
        self.link = link
        self.troubles: list[BaseException] = []
        self.objects = Objects(self, side)
        self._side = side
        self._operations = operations
        self._aliases = Aliases(first=0 if side.lends else 1)
        self._turn = threading.RLock()
        self._thread = threading.get_ident()
        self._talking = 0  # how many requests of the other side are being answered
        self._reading = 0
        self._ending: BaseException | None = None

    def refuse(self, reason: str, message: str) -> CrossingError:
        """The error to raise; the test that sees it has failed, whatever it does with it."""
        error = OpaqueValue(message) if reason == "opaque" else CannotCross(reason, message)
        self.troubles.append(error)
        return error

    def ask(self, what: str, *operands: Any) -> Any:
        """The other side's answer; raises what was raised there, :class:`CannotCross`, :class:`SolutionGone`."""
        if self._side.lends and threading.get_ident() != self._thread:
            raise self.refuse("thread", "got a call from another thread of the tests")
        with self._turn:
            if not self._side.lends and not self._talking:
                raise CannotCross("thread", "got a call when no test is waiting")
            try:
                self.link.send(self._request(what, operands))
                return self._answer()
            except CrossingError as error:
                self._trouble(error)
                raise
            except SolutionGone as error:
                self.troubles.append(error)
                raise

    def subclass(self, kind: Any, bases: tuple[type, ...], namespace: dict[str, Any], options: dict[str, Any]) -> None:
        """Make a class of the tests on the other side too; from then on ``kind`` stands for that one."""
        if not self._side.lends or not all(self.objects.can_be_base(base) for base in bases):
            raise self.refuse("subclass", f"got {kind.__qualname__} with the bases {[base.__name__ for base in bases]}")
        said = tuple((name, *_taken_apart(value)) for name, value in namespace.items() if name not in _NO_PART)
        with self.objects.adopting(kind):
            self.ask("subclass", kind.__name__, bases, said, options)

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while True:
            try:
                data = self.link.receive()
            except SolutionGone:
                return
            self.link.send(self._served(data))

    def _trouble(self, error: CrossingError) -> None:
        if not any(error is known for known in self.troubles):
            self.troubles.append(error)

    def _answer(self) -> Any:
        while True:
            data = self.link.receive()
            if data[:1] == bytes([_REQUEST]):
                self.link.send(self._served(data))
                continue
            before = len(self.troubles)
            kind, value = self._read(data)
            if self._ending is not None:
                ending, self._ending = self._ending, None
                raise ending
            if kind == _VALUE:
                return value
            if kind == _ERROR and isinstance(value, Exception):
                raise self.troubles[before] if len(self.troubles) > before else value  # what could not cross is why
            if kind == _ABORT and not self._side.lends:
                raise Interrupted
            raise SolutionRaised(f"the solution raised {value}")

    # Doing what is asked --------------------------------------------------------------------------------------------

    def _served(self, data: bytes) -> bytes:
        """The reply to a request. Nothing of the request is referred to here when it is written."""
        with self._turn:
            self._talking += 1
        try:
            reply = self._do(data)
            with self._turn:
                return self._reply(*reply)
        finally:
            self._talking -= 1

    def _do(self, data: bytes) -> tuple[int, list[Any]]:
        try:
            _, (what, operands) = self._read(data)
            return _VALUE, [self._operation(what, operands)(*operands)]
        except SolutionGone:
            raise
        except Exception as error:  # noqa: BLE001 - it is the other side's
            if self._side.lends and isinstance(error, AssertionError):
                self._ending = error
                return _ABORT, [None]
            if not self._side.lends:
                error.__traceback__ = None  # its frames hold what was given
            return _ERROR, [error]
        except BaseException as error:  # noqa: BLE001
            if self._side.lends:
                self._ending = error
                return _ABORT, [None]
            if isinstance(error, Interrupted):
                return _ABORT, [None]
            return _ABORT, [f"{type(error).__name__}({', '.join(map(repr, error.args))})"]

    def _operation(self, what: str, operands: tuple[Any, ...]) -> Callable[..., Any]:
        operation = self._operations.get(what)
        if operation is None:
            raise self._garbled(f"got the request {what!r}")
        reason = self._side.permits(what, operands, self.objects)
        if reason is not None:
            raise self.refuse(reason, f"the solution asked to {what} {_said(operands)}")
        return operation

    def _garbled(self, message: str) -> SolutionGone:
        gone = self.link.lost("garbled", message)
        self.troubles.append(gone)
        return gone

    # Messages -------------------------------------------------------------------------------------------------------

    def _encoder(self) -> Encoder:
        return Encoder(self.objects.write, self._aliases.number)

    def _request(self, what: str, operands: tuple[Any, ...]) -> bytes:
        encoder = self._encoder()
        encoder.out.append(bytes([_REQUEST]))
        request = (what, operands)  # lives as long as the encoder: its id is used
        encoder.value(request)
        self._news(encoder)
        first = self._aliases.reserve(len(encoder.boxes))
        encoder.out.append(_SHARE.pack(len(encoder.boxes), first))
        for at, box in enumerate(encoder.boxes):
            encoder.out.append(_PLACE.pack(at))
            self._aliases.add(first + Aliases.STEP * at, box)
        self.objects.sent(encoder)
        return encoder.finish()

    def _reply(self, kind: int, cell: list[Any]) -> bytes:
        """``cell`` holds what to answer; it is taken out, so that what nobody else holds can be seen."""
        encoder = self._encoder()
        try:
            encoder.out.append(bytes([kind]))
            encoder.value(cell[0])
            self._news(encoder)
        except Exception as error:
            if kind == _ERROR and type(cell[0]) is CannotCross:
                raise
            if not isinstance(error, CrossingError):
                error = CannotCross(
                    "object", f"got {type(cell[0]).__name__}, which raised {type(error).__name__}: {error}"
                )
            self._trouble(error)
            return self._reply(_ERROR, [CannotCross(error.reason, str(error))])
        self.objects.sent(encoder)
        message, boxes = encoder.out, encoder.boxes
        cell.clear()
        del encoder
        shared = held(boxes)
        first = self._aliases.reserve(len(shared))
        message.append(_SHARE.pack(len(shared), first))
        for at, (place, box) in enumerate(shared):
            message.append(_PLACE.pack(place))
            self._aliases.add(first + Aliases.STEP * at, box)
        return b"".join(message)

    def _news(self, encoder: Encoder) -> None:
        """What has happened on this side since it last spoke, after what it says."""
        if self._reading:
            encoder.value(None)
            return
        dropped, changes = self._aliases.news()
        troubles: tuple[Any, ...] = ()
        if not self._side.lends and self.troubles:
            troubles = tuple((error.reason, str(error)) for error in self.troubles if isinstance(error, CrossingError))
            self.troubles.clear()
        news = (dropped, changes, self.objects.returned(), troubles, self._side.said())
        try:
            encoder.keep.append(news)
            encoder.value(news if any(news) else None)
        except CannotCross:
            self._aliases.untold(dropped, changes)
            raise

    def _read(self, data: bytes) -> tuple[int, Any]:
        decoder = Decoder(data[1:], self.objects.read, self._aliases.box)
        self._reading += 1
        try:
            value = decoder.value()
            news = decoder.value()
            self._share(decoder)
            if data[0] == _REQUEST:
                _check_request(value)
            said = () if news is None else self._heed(news)
        except GarbledError as error:
            raise self._garbled(str(error)) from None
        finally:
            self._reading -= 1
        if said:
            self._side.show(said)
        if decoder.problem is not None:
            raise decoder.problem
        return data[0], value

    def _share(self, decoder: Decoder) -> None:
        count, first = _SHARE.unpack(decoder.take(_SHARE.size))
        for at in range(count):
            (place,) = _PLACE.unpack(decoder.take(_PLACE.size))
            if place >= len(decoder.boxes):
                raise GarbledError("got a container to share that is not there")
            if decoder.boxes[place] is not None:
                self._aliases.add(first + Aliases.STEP * at, decoder.boxes[place])
        decoder.end()

    def _heed(self, news: Any) -> Any:
        try:
            dropped, changes, returned, troubles, said = news
            for number, contents in changes:
                if self._side.lends and replaces(self._aliases.held(number), contents):
                    self.refuse("private", "the solution replaced a mock in a container of the tests")
                self._aliases.change(number, contents)
            for number in dropped:
                self._aliases.drop(number)
            for number in returned:
                self.objects.forget(number)
            for reason, message in troubles:
                self.refuse(str(reason), str(message))
        except (TypeError, ValueError) as error:
            raise GarbledError(f"got news that are none: {error}") from None
        return said


def _taken_apart(value: Any) -> tuple[str, Any]:
    """A method is no object that the other side can use: what it is made of is."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value).__name__, value.__func__
    if isinstance(value, property):
        return "property", (value.fget, value.fset, value.fdel)
    return "value", value


def _check_request(value: Any) -> None:
    if not (type(value) is tuple and len(value) == 2 and type(value[0]) is str and type(value[1]) is tuple):
        raise GarbledError("got a request that is none")


def _said(operands: tuple[Any, ...]) -> str:
    return ", ".join(word if isinstance(word, str) else type(word).__name__ for word in operands[:2])
