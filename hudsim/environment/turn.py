"""``Turn``: one task in a session's hands: its template being played, and the episodes that it holds."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from hudsim.bridge import Episode
from hudsim.environment.attached import Attached, current_holder
from hudsim.environment.environment import Environment
from hudsim.environment.play import CLOSE_S, Play
from hudsim.environment.reward import forfeited, lost
from hudsim.errors import HudsimError, SandboxBroken, TemplateError, WorkspaceError, words
from hudsim.loop.bounded import let_go

__all__ = ["Frame", "Turn"]

log = logging.getLogger(__name__)

Frame = dict[str, Any]


class Turn:
    """``start`` → ``grade``, each done in a task of the turn's own; ``end`` at any time.

    held
        The episodes that its template has started and not asked the result of.
    forfeit
        How an episode ended that the policy broke off. None: none did.
    waits_for
        What its start waits for, in words. None: nothing that others hold.
    started
        What its start replied. None: it has not.
    key
        Names the last call.
    """

    def __init__(self, environment: Environment, play: Play) -> None:
        self.held: list[tuple[Attached, Episode]] = []
        self.forfeit: str | None = None
        self.waits_for: str | None = None
        self.started: Frame | None = None
        self.began_s = time.monotonic()
        self.key: str | None = None
        self.play = play
        self._environment = environment
        self._work: asyncio.Task[Frame] | None = None
        self._over: asyncio.Future[HudsimError] = asyncio.get_running_loop().create_future()
        self._ending: asyncio.Task[None] | None = None
        self._finished = False

    @property
    def state(self) -> str:
        """``idle`` (it is over), ``working`` or ``started``."""
        if self._over.done():
            return "idle"
        if self._work is not None and not self._work.done():
            return "working"
        return "idle" if self._finished else "started"

    def start(self, key: str | None) -> None:
        """Begin with the prompt; once."""
        self._do(self._start, key)

    def grade(self, answer: Any, key: str | None) -> None:
        """Begin with the grade. Only while it is ``started``."""
        self._do(lambda: self._grade(answer), key)

    async def reply(self) -> Frame:
        """What the last call came to. Whoever waits may go; the work goes on.

        Raises what the template raised, or why the turn was ended.
        """
        work = self._work
        assert work is not None
        either: set[asyncio.Future[Any]] = {work, self._over}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done() and not work.cancelled():
            return work.result()
        if self._over.done():
            raise self._over.result()
        raise TemplateError(f"template {self.play.template.name} cancelled its own task")

    async def end(self, why: HudsimError) -> None:
        """Cancel what is under way, close the template, free its episodes; whoever waits for a reply is told ``why``.

        Idempotent; ends within some seconds, also if what it ends does not.
        """
        if self._ending is None:
            self._over.set_result(why)
            self._ending = asyncio.create_task(self._end(), name="hudsim-turn-ends")
        await asyncio.wait({self._ending})

    # In tasks of its own: a template's code knows whose turn it is, and outlives the call that asked ------------------

    def _do(self, work: Callable[[], Awaitable[Frame]], key: str | None) -> None:
        async def as_holder() -> Frame:
            current_holder.set(self)
            return await work()

        self.key = key
        self._work = asyncio.create_task(as_holder(), name="hudsim-turn")
        self._work.add_done_callback(_retrieved)

    async def _start(self) -> Frame:
        try:
            frame = await self.play.start()
            self._check_on()  # it need not have let itself be cancelled
            for name, workspace in self._environment.workspaces.items():
                for bound, binding in (await workspace.bindings(name)).items():
                    frame["bindings"][bound] = {**binding, **frame["bindings"].get(bound, {})}
            for attached, episode in self.held:
                frame["bindings"][attached.name] = {
                    "token": episode.token,
                    **frame["bindings"].get(attached.name, {}),
                }
            frame["capabilities"] = [capability.to_manifest() for capability in self._environment.capabilities]
        except BaseException:
            await self._finish()
            raise
        self.started = frame
        return frame

    def _check_on(self) -> None:
        if self._over.done():
            raise self._over.result()

    async def _grade(self, answer: Any) -> Frame:
        workspaces, told = self._environment.workspaces, dict[str, Frame]()
        try:
            await asyncio.gather(*(workspace.seal() for workspace in workspaces.values()))  # the agent's time is over
            told = {name: await workspace.changes() for name, workspace in workspaces.items()}
            evaluation = await self.play.grade(answer)
        except (WorkspaceError, SandboxBroken) as error:
            evaluation = lost(error, [line for workspace in workspaces.values() for line in workspace.evidence()])
        finally:
            await self._finish()
        if self.forfeit is not None:
            evaluation = forfeited(evaluation, self.forfeit)
        try:
            frame = evaluation.to_frame()
            if changes := {name: one for name, one in told.items() if one["changes"]}:
                frame["changes"] = changes
            json.dumps(frame)
        except (TypeError, ValueError, RecursionError) as error:
            name = self.play.template.name
            raise TemplateError(f"template {name} graded with what is no plain JSON: {error}", template=name) from None
        return frame

    async def _end(self) -> None:
        current_holder.set(self)
        if self._work is not None and not self._work.done():
            await let_go(self._work, f"template {self.play.template.name}", timeout_s=CLOSE_S)
        await self._finish()

    async def _finish(self) -> None:
        """Close the template, then free the episodes that it did not ask for, and end its rooms."""
        self._finished = True
        await self.play.close()
        held, self.held = self.held, []
        await asyncio.gather(*(attached.free(episode) for attached, episode in held))
        for name, workspace in self._environment.workspaces.items():
            try:
                await workspace.leave(self)
            except Exception as error:  # noqa: BLE001 - the task is over, and the others are to be left too
                log.warning("%s was not left: %s", name, words(error))


def _retrieved(work: asyncio.Task[Frame]) -> None:
    """Nobody may be waiting for it any more."""
    if not work.cancelled():
        work.exception()
