"""The session of ``/robot/<name>``, both ends, without sockets: frames in, events out, and the reverse.

The world's end moves through ``WORLD_TRANSITIONS``; anything else is a :class:`~hudsim.errors.WireError` that
says what was expected. A peer that sends ``accept`` with its claim speaks *hudsim/1*; one that does not is
served as *openpi/0*: the same observations without the extra keys, errors as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hudsim.errors import HudsimError, WireError, from_wire
from hudsim.wire.codec import decode, encode, encode_pieces
from hudsim.wire.ring import LARGE, Page, Ring
from hudsim.wire.usual_actions import UsualActions
from hudsim.wire.usual_observations import Layout, UsualObservations

__all__ = [
    "PROTOCOL",
    "PROTOCOLS",
    "PROTOCOL_V0",
    "WORLD_TRANSITIONS",
    "Ack",
    "Actions",
    "AgentSession",
    "Claim",
    "End",
    "Frame",
    "Greeting",
    "Heard",
    "Peer",
    "State",
    "WorldSession",
    "encode_observation",
]

PROTOCOL = "hudsim/1"
PROTOCOL_V0 = "openpi/0"
PROTOCOLS = (PROTOCOL, PROTOCOL_V0)
Array = NDArray[Any]


class State(Enum):
    """Where the world's end of a connection stands."""

    IDLE = "idle"  # no episode: before the first claim, and after each end
    EPISODE = "episode"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Peer:
    """What the agent's end asked for with its claim. ``hudsim/1`` peers get ``truncated, success, meta``.

    ``ring`` is the memory that it shares with the world; None: none, all goes through the socket. ``encodings`` are
    those of images that it understands.
    """

    protocol: str = PROTOCOL_V0
    accept: Mapping[str, Any] = field(default_factory=dict)
    ring: Ring | None = None
    encodings: frozenset[str] = frozenset()
    rich: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rich", self.protocol == PROTOCOL)

    def page(self) -> Page | None:
        """A page for the next observation; None: no memory is shared, or none of it free."""
        return None if self.ring is None else self.ring.pages.take()


class Claim(NamedTuple):
    """The agent claims the episode of ``token``; None: the only one there is, or a new one."""

    token: str | None
    peer: Peer


class Actions(NamedTuple):
    """One action or a chunk, as it came. ``obs_index``: the observation it was inferred from (None: not said)."""

    array: Array
    episode: str | None
    obs_index: int | None


class Ack(NamedTuple):
    """The agent has taken observation ``obs_index``: the credit for it returns."""

    obs_index: int


class End(NamedTuple):
    """The agent ends the episode by itself, for ``reason`` (``max_steps``, ``cancelled``)."""

    reason: str


WORLD_TRANSITIONS: dict[State, dict[type, State]] = {
    State.IDLE: {Claim: State.EPISODE, Actions: State.IDLE, Ack: State.IDLE, End: State.IDLE},
    State.EPISODE: {Actions: State.EPISODE, Ack: State.EPISODE, End: State.EPISODE},
    State.CLOSED: {},
}
"""What may come in each state, and where it leads.

``Actions``, ``Ack`` and ``End`` are legal in ``IDLE`` once an episode has been: they crossed its end on the way.
"""


class WorldSession:
    """The world's end of one connection.

    ``receive`` turns a frame into a :class:`Claim`, :class:`Actions`, :class:`Ack` or :class:`End`;
    ``ended`` and ``closed`` tell it what happened to the episode. ``late`` counts frames for an episode that
    was over already: a race, not an error. ``ring`` is memory to offer to the peer; None: none.
    """

    def __init__(self, greeting: Mapping[str, Any], ring: Ring | None = None) -> None:
        self.state = State.IDLE
        self._ring = ring
        self.peer = Peer()
        self.late = 0
        self._greeting = greeting
        self._claimed_once = False
        self._token: str | None = None
        self._usual: UsualActions | None = None

    def playing(self, token: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """The claim got the episode ``token``, whose actions are of this dtype and shape."""
        self._token = token
        self._usual = UsualActions.of(dtype, shape, token) if self.peer.rich else None

    def greeting(self) -> bytes:
        """The first frame: protocol, contract, limits, and that a claim is required."""
        shared = {} if self._ring is None else {"shm": self._ring.offer}
        return encode({"protocol": PROTOCOL, "claim_required": True, **shared, **self._greeting})

    def receive(self, frame: bytes | str) -> Claim | Actions | Ack | End:
        """What the peer's frame says. Raises :class:`WireError` if it is not legal now."""
        if isinstance(frame, bytes) and (actions := self.usual(frame)) is not None:
            return actions
        if self.state is State.CLOSED:
            raise WireError("got a frame on a session that is closed")
        event = _parse(frame, self.peer.ring)
        following = WORLD_TRANSITIONS[self.state].get(type(event))
        if following is None:
            raise WireError(f"got a {_word(event)} while an episode is running on this connection, expected actions")
        if self.state is State.IDLE and not isinstance(event, Claim):
            if not self._claimed_once:
                raise WireError(f'got {_word(event)} before a claim, expected {{"claim": token or nil}}')
            self.late += 1
        if isinstance(event, Claim):
            self._claimed_once = True
            event = Claim(event.token, self._met(event.peer))
            self.peer = event.peer
        self.state = following
        return event

    @property
    def has_usual(self) -> bool:
        """Whether :meth:`usual` may know a frame of this peer."""
        return self._usual is not None

    def usual(self, frame: bytes) -> Actions | None:
        """The actions of an agent that sends what it always does; None: it is for :meth:`receive`.

        It changes nothing, and may be called from another thread.
        """
        known = self._usual.match(frame) if self._usual is not None and self.state is State.EPISODE else None
        return None if known is None else Actions(known[0], self._token, known[1])

    def _met(self, peer: Peer) -> Peer:
        """The peer, with the ring if it has found it. Nobody can attach after that, nor one that did not want it."""
        if self._ring is None:
            return peer
        self._ring.shut()
        if peer.rich and peer.accept.get("shm") is True:
            return replace(peer, ring=self._ring)
        self._ring = None
        return peer

    def close(self) -> None:
        """The connection is gone, and the memory that was shared with it let go of. Idempotent."""
        self.state = State.CLOSED
        self.peer = replace(self.peer, ring=None)
        if self._ring is not None:
            self._ring.shut()
            self._ring = None

    def ended(self) -> None:
        """The episode is over; the connection may claim the next one."""
        if self.state is State.EPISODE:
            self.state = State.IDLE

    def error(self, error: HudsimError) -> bytes | str:
        """The frame that tells the peer of ``error``; the session is closed after it.

        For openpi/0 a text frame, that protocol's way of saying it.
        """
        self.state = State.CLOSED
        if not self.peer.rich:
            return f"{error.name}: {error.message}"
        body = {"code": error.code, "name": error.name, "message": error.message, "data": _plain(error.data)}
        return encode({"error": body})


class Frame:
    """An observation, and the page of shared memory that holds its large arrays (None: they are in it).

    ``pieces`` make up its bytes; large arrays are not copied, so that :meth:`data` is to be asked for before the
    simulator writes to them again, if the pieces are not sent until then. A frame that is dropped gives its page back;
    one that is :meth:`sent` leaves that to its reader.
    """

    __slots__ = ("page", "pieces", "size")

    def __init__(self, pieces: Sequence[bytes | memoryview], page: Page | None = None) -> None:
        self.pieces, self.page = pieces, page
        self.size = sum(map(len, pieces))

    def data(self) -> bytes:
        """Its bytes in one piece, which are its own from then on."""
        whole = b"".join(self.pieces)
        self.pieces = (whole,)
        return whole

    def sent(self) -> None:
        """It is on its way: only the other end gives the page back now."""
        if self.page is not None:
            self.page.sent()


def encode_observation(
    data: Mapping[str, Array],
    *,
    terminated: bool,
    truncated: bool,
    reward: float,
    success: bool | None,
    meta: dict[str, Any],
    peer: Peer,
    page: Page | None,
    usual: UsualObservations | None = None,
) -> Frame:
    """One observation as a frame for ``peer``: flat, its features beside the wire's own keys.

    Large arrays go to ``page``, which is of the peer's ring; None: it has none, or none is free. An openpi/0 peer
    knows only ``terminated``, so a time limit ends its episode by that key. ``usual`` is what most frames are like.
    """
    if not peer.rich:
        return Frame(encode_pieces({**data, "terminated": terminated or truncated, "reward": reward}))
    pieces = None
    if usual is not None and not terminated and not truncated:
        pieces = usual.write(data, reward, success, meta, page)
    if pieces is None:
        outcome = {"terminated": terminated, "truncated": truncated, "reward": reward, "success": success}
        pieces = encode_pieces({**data, **outcome, "meta": meta}, page)
    return Frame(pieces, page if page is not None and page.used else None)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The world's first frame. ``protocol`` is what it speaks: a HUD bridge says none, so ``openpi/0``."""

    protocol: str
    contract: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(slots=True)  # one is made each tick: frozen, that takes three times as long
class Heard:
    """An observation as the agent's end received it; the arrays are read-only views of the frame,
    or of memory that the world shares, which stays as it is as long as this process holds them. A forked child is
    another: give it a copy.

    ``data`` {feature: array}, ``reward`` of the last tick, ``success`` None where the world does not say,
    ``meta`` as in the design of the wire ({} from an openpi/0 world). ``result`` is the finished episode's
    record, on its last observation (or instead of one, with empty ``data``, after the agent ended it).
    """

    data: dict[str, Array]
    terminated: bool
    truncated: bool
    reward: float
    success: bool | None
    meta: Mapping[str, Any]
    result: Mapping[str, Any] | None

    @property
    def over(self) -> bool:
        """No further observation of this episode will come."""
        return self.terminated or self.truncated or self.result is not None

    @property
    def index(self) -> int:
        """How many ticks the world had done when it saw this: 0 is the first. -1 if the world does not count."""
        return int(self.meta.get("obs_index", -1))


class AgentSession:
    """The agent's end of one connection. ``ring`` is the memory that it shares with the world; None: none.

    ``encodings`` are those of images that it asks for; in an observation ``{encoding: bytes}`` may then stand for one.
    """

    def __init__(self) -> None:
        self.greeting: Greeting | None = None
        self.encodings: Sequence[str] = ()
        self.ring: Ring | None = None
        self._usual: UsualObservations | None = None
        self._actions: UsualActions | None = None

    @property
    def rich(self) -> bool:
        """Whether the world speaks hudsim/1."""
        return self.greeting is not None and self.greeting.protocol == PROTOCOL

    def receive_greeting(self, frame: bytes | str, *, share: bool = True) -> Greeting:
        """The world's first frame; with ``share``, attach to the memory that it offers. Raises :class:`WireError`."""
        message = _decoded(frame)
        protocol = message.get("protocol", PROTOCOL_V0)
        if protocol not in (PROTOCOL, PROTOCOL_V0):
            raise WireError(f"the world speaks {protocol!r}, expected {PROTOCOL!r} or {PROTOCOL_V0!r}")
        contract = message.get("contract", {})
        self.greeting = Greeting(protocol, contract if isinstance(contract, Mapping) else {}, message)
        if share and self.rich:
            self.ring = Ring.attach(message.get("shm"))
        return self.greeting

    def expect(self, layout: Layout) -> None:
        """Observations are like this, as the contract says it. Others are understood too, in three times the time."""
        self._usual = UsualObservations.of(layout) if self.rich else None

    def playing(self, token: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """The episode is ``token``, whose actions are of this dtype and shape."""
        self._actions = UsualActions.of(dtype, shape, token) if self.rich else None

    def claim(self, token: str | None) -> bytes:
        """The claim for ``token``, asking for hudsim/1 where the world offers it."""
        message: dict[str, Any] = {"claim": token}
        if self.rich:
            message["accept"] = accept = dict[str, Any](protocol=PROTOCOL)
            if self.ring is not None:
                accept["shm"] = True
            if self.encodings:
                accept["encodings"] = [*self.encodings]
        return encode(message)

    def actions(self, array: Array, *, episode: str | None, obs_index: int | None) -> bytes:
        """One action or a chunk. An openpi/0 world gets float32, all that protocol carries."""
        if self._actions is not None and (frame := self._actions.write(array, episode, obs_index)) is not None:
            return frame
        if not self.rich:
            return encode({"actions": np.asarray(array, dtype=np.float32)})
        message: dict[str, Any] = {"actions": np.asarray(array)}
        if episode is not None:
            message["episode"] = episode
        if obs_index is not None:
            message["obs_index"] = obs_index
        page = self.ring.back.take() if self.ring is not None and message["actions"].nbytes >= LARGE else None
        frame = encode(message, page)
        if page is not None:
            page.sent()
        return frame

    def ack(self, obs_index: int) -> bytes:
        """That observation ``obs_index`` has been taken."""
        return encode({"ack": obs_index})

    def end(self, reason: str) -> bytes:
        """That the agent ends the episode."""
        return encode({"end": reason})

    def receive(self, frame: bytes | str) -> Heard:
        """An observation (or the result alone). Raises the typed error that the world sent, or :class:`WireError`."""
        if isinstance(frame, bytes) and (heard := self._known(frame)) is not None:
            return heard
        message = _decoded(frame, self.ring)
        if "error" in message:
            raise _remote_error(message["error"])
        meta = _map(message, "meta") or {}
        for key in ("obs_index", "t_send_ns"):
            _index(meta, key, optional=True)
        success = message.pop("success", None)
        return Heard(
            terminated=bool(_number(message, "terminated")),
            truncated=bool(_number(message, "truncated")),
            reward=_number(message, "reward"),
            success=None if success is None else bool(_number({"success": success}, "success")),
            result=_map(message, "result") or _map(dict(meta), "result"),
            meta=meta,
            data=message,
        )

    def _known(self, frame: bytes) -> Heard | None:
        """An observation that is as most are; None: it is to be decoded."""
        if self._usual is None or (usual := self._usual.read(frame, self.ring)) is None:
            return None
        meta = usual.meta
        for key in ("obs_index", "t_send_ns"):
            _index(meta, key, optional=True)
        return Heard(usual.data, False, False, usual.reward, usual.success, meta, None)


def _parse(frame: bytes | str, ring: Ring | None) -> Claim | Actions | Ack | End:
    if isinstance(frame, str):
        raise WireError(f"got a text frame {frame[:60]!r}, expected a binary msgpack frame")
    message = decode(frame, shared=ring)
    if not isinstance(message, dict):
        raise WireError(f"got a {type(message).__name__}, expected a map")
    if "actions" in message:
        array = message["actions"]
        if isinstance(array, np.generic):
            array = np.asarray(array)
        if not isinstance(array, np.ndarray | np.generic):
            raise WireError(f"actions: got {_kind(array)}, expected an array (msgpack-numpy)")
        if ring is not None:  # before it is checked: its sender can still write there
            array = np.array(array)
        return Actions(np.asarray(array), _text(message, "episode"), _index(message, "obs_index", optional=True))
    if "claim" in message:
        return Claim(_text(message, "claim"), _peer(message.get("accept")))
    if "ack" in message:
        index = _index(message, "ack")
        assert index is not None
        return Ack(index)
    if "end" in message:
        return End(_text(message, "end") or "cancelled")
    if any(isinstance(value, np.ndarray) for value in message.values()):
        raise WireError(
            f"got an observation ({', '.join(sorted(message)[:4])}), expected a claim: this is a world, not a policy "
            "server. It sends observations and takes actions; connect a policy's agent (hudsim.RobotClient) to it"
        )
    raise WireError(f"got a map of {sorted(message)[:8]}, expected one of: claim, actions, ack, end")


def _peer(accept: Any) -> Peer:
    if accept is None:
        return Peer()
    if not isinstance(accept, dict):
        raise WireError(f"accept: got {_kind(accept)}, expected a map")
    protocol = accept.get("protocol", PROTOCOL)
    if not isinstance(protocol, str) or protocol not in (PROTOCOL, PROTOCOL_V0):
        raise WireError(f"accept.protocol: got {protocol!r:.40}, expected {PROTOCOL!r} or {PROTOCOL_V0!r}")
    encodings = accept.get("encodings", [])
    if not isinstance(encodings, list) or not all(isinstance(word, str) for word in encodings):
        raise WireError(f"accept.encodings: got {_kind(encodings)}, expected a list of strings")
    return Peer(protocol, accept, encodings=frozenset(encodings if protocol == PROTOCOL else ()))


def _text(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    if value is None or isinstance(value, str):
        return value
    raise WireError(f"{key}: got {_kind(value)}, expected a string or nil")


def _index(message: Mapping[str, Any], key: str, *, optional: bool = False) -> int | None:
    value = message.get(key)
    if value is None and optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise WireError(f"{key}: got {_kind(value)}, expected a whole number from 0")
    return value


def _map(message: dict[str, Any], key: str) -> Mapping[str, Any] | None:
    value = message.pop(key, None)
    if value is None or isinstance(value, dict):
        return value
    raise WireError(f"{key}: got {_kind(value)}, expected a map or nil")


def _number(message: dict[str, Any], key: str) -> float:
    """A bool or number, which may also come as an array of one; 0 if it is not there."""
    value = message.pop(key, None)
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return 0.0 if value is None else float(value)
    raise WireError(f"{key}: got {_kind(value)}, expected a number")


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.40}"


def _word(event: Claim | Actions | Ack | End) -> str:
    return type(event).__name__.lower()


def _decoded(frame: bytes | str, ring: Ring | None = None) -> dict[str, Any]:
    if isinstance(frame, str):
        name, _, message = frame.partition(": ")
        raise from_wire(name, message) if message and name.isidentifier() else HudsimError(f"the world says: {frame}")
    message = decode(frame, shared=ring)
    if not isinstance(message, dict):
        raise WireError(f"got {_kind(message)} from the world, expected a map")
    return message


def _remote_error(body: Any) -> HudsimError:
    if not isinstance(body, Mapping):
        return HudsimError(f"the world says: {body}")
    data = body.get("data")
    return from_wire(str(body.get("name")), str(body.get("message")), data if isinstance(data, Mapping) else {})


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool, type(None))
    return {key: value if isinstance(value, plain) else str(value) for key, value in data.items()}
