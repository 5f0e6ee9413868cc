"""``Session``: one peer's work on an environment: a task that is started, then graded, whoever hangs up meanwhile."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from hudsim.environment.environment import Environment
from hudsim.environment.play import Play
from hudsim.environment.turn import Frame, Turn
from hudsim.errors import HudsimError, NoTask

__all__ = ["Session"]


class Session:
    """At most one task at a time. Its work is the session's own: a link that breaks meanwhile does not break it.

    ``key`` names one call: a peer that lost the link before the reply asks again with the same key, and gets the
    reply of the first call.
    """

    def __init__(self, environment: Environment) -> None:
        self.id = secrets.token_hex(8)
        self._environment = environment
        self._turn: Turn | None = None
        self._ended: HudsimError | None = None

    @property
    def state(self) -> str:
        """``idle``, ``working`` (on a start or a grade) or ``started``."""
        return "idle" if self._turn is None else self._turn.state

    def told(self) -> Frame:
        """What it is at, plain JSON: ``state``, and of its ``task`` ``id``, ``args``, ``seconds``, ``waits_for``."""
        turn = self._turn
        if turn is None or turn.state == "idle":
            return {"session": self.id, "state": "idle", "task": None}
        task = {
            "id": turn.play.template.id,
            "args": turn.play.given,
            "seconds": round(time.monotonic() - turn.began_s, 3),
            "waits_for": turn.waits_for,
        }
        return {"session": self.id, "state": turn.state, "task": task}

    def current(self) -> Frame:
        """The task that was started: its id, args, and what its start replied.

        Raises :class:`~hudsim.errors.NoTask` unless it is there to be worked on.
        """
        turn = self._turn
        if turn is None or turn.state != "started" or turn.started is None:
            raise NoTask(f"session {self.id} has no task to be worked on: it is {self.state}")
        return {"id": turn.play.template.id, "args": turn.play.given, **turn.started}

    async def start(self, template_id: str, args: Mapping[str, Any], key: str | None) -> Frame:
        """Start a task; the one before it is cancelled. The prompt, bindings and capabilities."""
        if (again := self._again(key)) is not None:
            return await again.reply()
        play = Play(self._environment.find(template_id), args)  # refused before anything is given up
        while self._turn is not None:  # another start may have come first
            await self.cancel()
        if self._ended is not None:
            raise self._ended
        turn = self._turn = Turn(self._environment, play)
        turn.start(key)
        return await turn.reply()

    async def grade(self, answer: Any, key: str | None) -> Frame:
        """Grade the task that was started. Raises :class:`~hudsim.errors.NoTask` if there is none."""
        if (again := self._again(key)) is not None:
            return await again.reply()
        turn = self._turn
        if turn is None or turn.state != "started":
            raise NoTask(
                f"session {self.id}: got tasks.grade, expected tasks.start before it; the session is {self.state}"
            )
        turn.grade(answer, key)
        return await turn.reply()

    async def cancel(self) -> bool:
        """End the task where it stands; whether there was one."""
        turn = self._turn
        if turn is None:
            return False
        there_was = turn.state != "idle"
        await turn.end(self._ended or NoTask(f"session {self.id}: the task was cancelled"))
        if self._turn is turn:
            self._turn = None
        return there_was

    async def end(self, why: HudsimError | None) -> None:
        """No task any more; whoever waits for one is told ``why``. None: that the session has ended."""
        self._ended = why or NoTask(f"session {self.id} has ended")
        await self.cancel()

    def reference(self) -> Any:
        """The reference of the task that was started. Raises :class:`~hudsim.errors.NoTask` if there is none."""
        if self._turn is None or self.state == "idle":
            raise NoTask(f"session {self.id}: got tasks.reference, expected tasks.start before it")
        return self._turn.play.template.solve(self._turn.play.args)

    def _again(self, key: str | None) -> Turn | None:
        """The turn whose last call was this one."""
        return self._turn if self._turn is not None and key is not None and key == self._turn.key else None
