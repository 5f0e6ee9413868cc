"""``Session``: one peer's work on an environment: a task that is started, then graded, whoever hangs up meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Coroutine, Mapping
from typing import Any

from hudsim.bridge import Episode
from hudsim.environment.attached import Attached, current_holder
from hudsim.environment.environment import Environment
from hudsim.environment.play import Play
from hudsim.errors import NoTask
from hudsim.graders import EvaluationResult

__all__ = ["Session"]

log = logging.getLogger(__name__)

Frame = dict[str, Any]


class Session:
    """At most one task at a time. Its work is the session's own: a link that breaks meanwhile does not break it.

    ``key`` names one call: a peer that lost the link before the reply asks again with the same key, and gets the
    reply of the first call.
    """

    def __init__(self, environment: Environment) -> None:
        self.id = secrets.token_hex(8)
        self.held: list[tuple[Attached, Episode]] = []
        self._environment = environment
        self._play: Play | None = None
        self._work: asyncio.Task[Frame] | None = None
        self._key: str | None = None

    @property
    def state(self) -> str:
        """``idle``, ``working`` (on a start or a grade) or ``started``."""
        if self._work is not None and not self._work.done():
            return "working"
        return "started" if self._play is not None else "idle"

    async def start(self, template_id: str, args: Mapping[str, Any], key: str | None) -> Frame:
        """Start a task; the one before it is cancelled. The prompt, bindings and capabilities."""
        if self._again(key):
            return await self._reply()
        play = Play(self._environment.find(template_id), args)  # refused before anything is given up
        await self.cancel()
        self._play = play
        return await self._do(self._started(play), key)

    async def grade(self, answer: Any, key: str | None) -> Frame:
        """Grade the task that was started. Raises :class:`~hudsim.errors.NoTask` if there is none."""
        if self._again(key):
            return await self._reply()
        play = self._play
        if play is None or self.state != "started":
            raise NoTask(
                f"session {self.id}: got tasks.grade, expected tasks.start before it; the session is {self.state}"
            )
        return await self._do(self._graded(play, answer), key)

    async def cancel(self) -> bool:
        """End the task where it stands; whether there was one."""
        work, self._work, self._key = self._work, None, None
        working = work is not None and not work.done()
        if work is not None and working:
            work.cancel()
            await asyncio.wait({work})
        play, self._play = self._play, None
        if play is not None:
            await self._alone(self._ended(play))
        return working or play is not None

    def reference(self) -> Any:
        """The reference of the task that was started. Raises :class:`~hudsim.errors.NoTask` if there is none."""
        if self._play is None:
            raise NoTask(f"session {self.id}: got tasks.reference, expected tasks.start before it")
        return self._play.template.solve(self._play.args)

    # The work, in a task of its own -------------------------------------------------------------------------------

    def _again(self, key: str | None) -> bool:
        return key is not None and key == self._key and self._work is not None

    async def _do(self, work: Coroutine[Any, Any, Frame], key: str | None) -> Frame:
        self._key = key
        self._work = asyncio.create_task(self._as_holder(work), name=f"hudsim-session-{self.id}")
        return await self._reply()

    async def _reply(self) -> Frame:
        """What the work came to. Whoever waits may go; the work goes on."""
        assert self._work is not None
        work = self._work
        with contextlib.suppress(asyncio.CancelledError):
            return await asyncio.shield(work)
        if work.cancelled():
            raise NoTask(f"session {self.id}: the task was cancelled")
        raise asyncio.CancelledError

    async def _as_holder(self, work: Coroutine[Any, Any, Frame]) -> Frame:
        current_holder.set(self)
        return await work

    async def _alone(self, work: Coroutine[Any, Any, None]) -> None:
        """In a task of its own too: a template's ``finally`` clauses know whose session it is."""

        async def as_holder() -> None:
            current_holder.set(self)
            await work

        await asyncio.create_task(as_holder())

    async def _started(self, play: Play) -> Frame:
        rooms: dict[str, dict[str, Any]] = {}
        try:
            frame = await play.start()
            for name, workspace in self._environment.workspaces.items():
                rooms.update(await workspace.bindings(name))
        except BaseException:
            self._play = None
            await self._ended(play)
            raise
        tokens = {attached.name: {"token": episode.token} for attached, episode in self.held}
        for name, binding in {**tokens, **rooms}.items():
            frame["bindings"][name] = {**binding, **frame["bindings"].get(name, {})}
        frame["capabilities"] = [capability.to_manifest() for capability in self._environment.capabilities]
        return frame

    async def _graded(self, play: Play, answer: Any) -> Frame:
        try:
            evaluation: EvaluationResult = await play.grade(answer)
        finally:
            self._play = None
            await self._ended(play)
        return evaluation.to_frame()

    async def _ended(self, play: Play) -> None:
        """Close the template, then free the episodes that it did not ask for, and end its rooms."""
        await play.close()
        held, self.held = self.held, []
        for attached, episode in held:
            await attached.free(episode)
        for name, workspace in self._environment.workspaces.items():
            try:
                await workspace.leave(self)
            except Exception as error:  # noqa: BLE001 - the task is over, and the others are to be left too
                log.warning("session %s: %s was not left: %s: %s", self.id, name, type(error).__name__, error)
