"""``Control``: the server's end of ``/control``: sessions that outlive their links, for a while."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudsim.environment.environment import Environment
from hudsim.environment.gateway import Gateway
from hudsim.environment.session import Session
from hudsim.errors import HudsimError, NoTask, ShuttingDown, TaskError, UsageError
from hudsim.given import given_text, refusal
from hudsim.net import Link, host_id, serve_rpc

__all__ = ["PROTOCOL", "Control"]

PROTOCOL = "hudsim-control/1"

_PARK_S = 30.0
_LONGEST_PARK_S = 24 * 3600.0
_MOST_PARKED = 1024
_STOP_S = 20.0
_LONGEST_WORD = 80


@dataclass
class _Entry:
    """A session and who speaks for it. ``link`` None: it is parked, until ``expiry`` ends it."""

    session: Session
    link: Link | None = None
    park_s: float = _PARK_S
    expiry: asyncio.TimerHandle | None = None


class Control:
    """The sessions of one served environment.

    A link speaks for one session: a new one, or with ``hello(session_id=…)`` one that an earlier link left behind. A
    link that ends without ``bye`` parks its session for ``park_s``; then its task is cancelled. If 1024 are parked
    already, the one that has been for longest ends instead.

    reveal
        Whether ``tasks.reference`` is answered.
    """

    def __init__(self, environment: Environment, gateway: Gateway, *, reveal: bool = False) -> None:
        self.environment = environment
        self.gateway = gateway
        self.reveal = reveal
        self._entries: dict[str, _Entry] = {}
        self._parked: dict[str, _Entry] = {}  # the longest first
        self._ending: set[asyncio.Task[Any]] = set()
        self._stopped = False
        self.started = self.graded = 0

    @property
    def live(self) -> int:
        """Sessions with a link."""
        return len(self._entries) - len(self._parked)

    @property
    def parked(self) -> int:
        """Sessions that wait for one."""
        return len(self._parked)

    async def serve(self, link: Link) -> None:
        """Answer one link until it ends."""
        line = _Line(self, link)
        try:
            await serve_rpc(link, line.methods())
        finally:
            line.hang_up()

    async def stop(self) -> None:
        """Cancel every session's task, for good: whoever waits for one is told that the server is going down."""
        self._stopped = True
        for entry in list(self._entries.values()):
            self.end(entry, _going_down())
        if self._ending:
            await asyncio.wait(self._ending, timeout=_STOP_S)

    # For a line ---------------------------------------------------------------------------------------------------

    def open(self, link: Link, session_id: str | None) -> _Entry:
        """A new session, or the one called so.

        Raises :class:`~hudsim.errors.TaskError` if that is not here, :class:`~hudsim.errors.ShuttingDown` after
        :meth:`stop`.
        """
        if self._stopped:
            raise _going_down()
        if session_id is None:
            session = Session(self.environment)
            entry = self._entries[session.id] = _Entry(session)
        else:
            entry = self.find(session_id)
        self._unpark(entry)
        if entry.link not in (None, link):
            entry.link.abort()  # a peer that comes again knows better than we whether its old link lives
        entry.link = link
        return entry

    def park(self, entry: _Entry, link: Link) -> None:
        """The entry's link has ended, unless it has another by now, or has ended itself."""
        if entry.link is not link:
            return
        entry.link = None
        if len(self._parked) >= _MOST_PARKED:
            self.end(next(iter(self._parked.values())))
        self._parked[entry.session.id] = entry
        entry.expiry = asyncio.get_running_loop().call_later(entry.park_s, self.end, entry)

    def end(self, entry: _Entry, why: HudsimError | None = None) -> asyncio.Task[Any]:
        """Forget the session, take its passes away and cancel its task, in a task that nobody need wait for."""
        self._unpark(entry)
        entry.link = None
        self._entries.pop(entry.session.id, None)
        self.gateway.dismiss(entry.session.id)
        task = asyncio.ensure_future(entry.session.end(why))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def passes(self, session: Session) -> dict[str, str]:
        """What the session's agent is let in with. Raises :class:`~hudsim.errors.NoTask` if it has ended."""
        if session.id not in self._entries:
            raise NoTask(f"session {session.id} has ended")
        return self.gateway.admit(session.id)

    def told(self, session_id: str | None) -> list[dict[str, Any]]:
        """What each session (None), or that one, is at; see :meth:`~hudsim.environment.session.Session.told`.

        Besides: whether it is ``connected``, and ``ends_in_s``: how long it waits for a peer. None: it has one.
        """
        now_s = asyncio.get_running_loop().time()
        return [
            {
                **entry.session.told(),
                "connected": entry.expiry is None,
                "ends_in_s": None if entry.expiry is None else round(max(0.0, entry.expiry.when() - now_s), 3),
            }
            for entry in (self._entries.values() if session_id is None else [self.find(session_id)])
        ]

    def find(self, session_id: str) -> _Entry:
        """The session called so. Raises :class:`~hudsim.errors.TaskError` if it is not here."""
        if session_id not in self._entries:
            raise TaskError(
                f"no session {session_id[:_LONGEST_WORD]!r} here: it ended, was parked for too long, or is another "
                f"server's ({self.parked} are parked)"
            )
        return self._entries[session_id]

    def reference(self, entry: _Entry) -> Any:
        if not self.reveal:
            raise TaskError(
                f"environment {self.environment.name} is served without its references; for agents that need them, "
                "serve it with reveal=True (--reveal-references)"
            )
        return entry.session.reference()

    def _unpark(self, entry: _Entry) -> None:
        self._parked.pop(entry.session.id, None)
        if entry.expiry is not None:
            entry.expiry.cancel()
            entry.expiry = None


def _going_down() -> ShuttingDown:
    return ShuttingDown("the environment's server is going down")


class _Line:
    """The methods of one link."""

    def __init__(self, control: Control, link: Link) -> None:
        self._control, self._link = control, link
        self._environment = control.environment
        self._entry: _Entry | None = None

    def methods(self) -> dict[str, Any]:
        return {
            "hello": self.hello,
            "tasks.list": self.list_tasks,
            "tasks.start": self.start,
            "tasks.grade": self.grade,
            "tasks.cancel": self.cancel,
            "tasks.current": self.current,
            "tasks.reference": self.reference,
            "sessions.list": self.sessions,
            "sessions.cancel": self.cancel_session,
            "bye": self.bye,
        }

    def hang_up(self) -> None:
        if self._entry is not None:
            self._control.park(self._entry, self._link)

    async def hello(
        self, session_id: str | None = None, park_s: float | None = None, host: str | None = None
    ) -> dict[str, Any]:
        """Who is there. ``host``: what :func:`~hudsim.net.host_id` says at the caller's end."""
        if session_id is not None:
            given_text(session_id, "session_id", "what an earlier hello said")
        if park_s is not None and not (_is_number(park_s) and 0 <= park_s <= _LONGEST_PARK_S):
            raise refusal("park_s", park_s, f"seconds from 0 to {_LONGEST_PARK_S:g}")
        before = self._entry
        if before is None or session_id not in (None, before.session.id):
            self._entry = self._control.open(self._link, session_id)
            if before is not None:
                await asyncio.wait({self._control.end(before)})
        assert self._entry is not None
        if park_s is not None:
            self._entry.park_s = float(park_s)
        session = self._entry.session
        return {
            "protocol": PROTOCOL,
            "session_id": session.id,
            "state": session.state,
            "env": {"name": self._environment.name, "version": self._environment.version},
            "slots": self._environment.slots,
            "reveals": self._control.reveal,
            "same_host": host == host_id(),
            "capabilities": [capability.to_manifest() for capability in self._environment.capabilities],
            "passes": self._control.passes(session),
        }

    async def list_tasks(self) -> dict[str, Any]:
        return {"tasks": [template.manifest() for template in self._environment.templates.values()]}

    async def start(self, id: str, args: Mapping[str, Any] | None = None, key: str | None = None) -> dict[str, Any]:  # noqa: A002
        given_text(id, "id", "a task's id")
        if args is not None and not isinstance(args, Mapping):
            raise UsageError(f"args: got a {type(args).__name__}, expected an object")
        _check_key(key)
        session = self._session()
        frame = await session.start(id, args or {}, key)
        self._control.started += 1
        return {**frame, "passes": self._control.passes(session)}

    async def grade(self, answer: Any = None, key: str | None = None) -> dict[str, Any]:
        _check_key(key)
        frame = await self._session().grade(answer, key)
        self._control.graded += 1
        return frame

    async def cancel(self) -> dict[str, Any]:
        return {"cancelled": await self._session().cancel()}

    async def current(self) -> dict[str, Any]:
        session = self._session()
        return {**session.current(), "passes": self._control.passes(session)}

    async def sessions(self, session_id: str | None = None) -> dict[str, Any]:
        if session_id is not None:
            given_text(session_id, "session_id", "what an earlier hello said")
        return {"sessions": self._control.told(session_id)}

    async def cancel_session(self, session_id: str) -> dict[str, Any]:
        given_text(session_id, "session_id", "what an earlier hello said")
        entry = self._control.find(session_id)
        there_was = entry.session.state != "idle"
        gone = NoTask(f"session {session_id} was cancelled by another one")
        await asyncio.wait({self._control.end(entry, gone)})
        return {"cancelled": there_was}

    async def reference(self) -> dict[str, Any]:
        self._session()
        assert self._entry is not None
        return {"reference": self._control.reference(self._entry)}

    async def bye(self) -> dict[str, Any]:
        entry, self._entry = self._entry, None
        if entry is not None:
            await asyncio.wait({self._control.end(entry)})
        return {}

    def _session(self) -> Session:
        if self._entry is None:
            self._entry = self._control.open(self._link, None)
        return self._entry.session


def _check_key(key: object) -> None:
    if key is not None and not (isinstance(key, str) and len(key) <= _LONGEST_WORD):
        raise refusal("key", key, f"a text of {_LONGEST_WORD} characters at most")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
