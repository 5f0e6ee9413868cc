"""``rollout``: one run from its environment to its grade, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, TypeVar

from hudsim.environment.client import ControlClient
from hudsim.errors import (
    ConnectError,
    EnvironmentFailed,
    EpisodeError,
    HudsimError,
    LinkError,
    NoTask,
    SandboxError,
)
from hudsim.eval.access import Access
from hudsim.eval.limits import Limits
from hudsim.eval.plugged import check_protocols, check_reference
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.run import Run
from hudsim.eval.runtime import Runtime
from hudsim.eval.trace import Step, Trace
from hudsim.eval.waiting import follow
from hudsim.eval.work import is_interrupt, said, traceback_of, work
from hudsim.graders import EvaluationResult, Verdict
from hudsim.robot.ending import POLICY_LOST

__all__ = ["rollout"]

log = logging.getLogger(__name__)

R = TypeVar("R")

_STOP_S = 5.0
"""How long an environment may take to be given back."""
_NEWS_S = 0.05
"""How long the news of a death may take to come."""
_HURRY_S = 1.0
"""The same, when somebody has interrupted."""


async def rollout(run: Run, agent: Agent, provider: Provider, limits: Limits) -> None:
    """Have ``agent`` work on ``run`` in an environment of ``provider``, and grade it: fills the run in.

    Raises nothing but CancelledError, when it is itself cancelled (the run's verdict is ``cancelled`` then). What
    goes wrong is in the run: see :class:`~hudsim.graders.Verdict` for what counts and what does not.
    """
    await _Rollout(run, agent, provider, limits).play()


class _TimeUpError(Exception):
    """The whole run's time is up."""


class _TooLongError(Exception):
    """A part of the run took longer than it may."""


class _Rollout:
    def __init__(self, run: Run, agent: Agent, provider: Provider, limits: Limits) -> None:
        self._run, self._agent, self._provider, self._limits = run, agent, provider, limits.of(run.task)
        self._began_s = time.monotonic()
        self._until_s = None if limits.rollout_s is None else self._began_s + limits.rollout_s
        self._phase = "provisioning"
        self._scope = contextlib.AsyncExitStack()
        self._runtime: Runtime | None = None

    async def play(self) -> None:
        run = self._run
        run.trace = Trace()  # whose clock starts now
        run.started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            await self._drive()
        except BaseException as error:
            if is_interrupt(error):
                raise
            me = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and me is not None and me.cancelling():
                self._settle(Verdict.cancelled, f"[{self._phase}] cancelled")
                await self._give_back(_HURRY_S)
                raise
            # Whatever it is: a run that breaks does not break the others.
            self._settle(Verdict.infra_error, await self._said(error))
        run.seconds, run.waits_for = round(time.monotonic() - self._began_s, 6), None
        await self._give_back(_STOP_S)

    async def _drive(self) -> None:
        run = self._run
        try:
            client = await self._connected()
            check_reference(self._agent, f"environment {client.environment}", reveals=client.manifest["reveals"])
            self._phase = "starting the task"
            waiting = asyncio.create_task(follow(client, self._waits), name=f"hudsim-waiting-{run.id}")
            try:
                await self._start(client)
            finally:
                waiting.cancel()
            run.waits_for = None
            check_protocols(self._agent, run.capabilities)  # found here: for the agent it would be a loss
        except _TimeUpError:
            self._settle(Verdict.infra_error, self._time_up())
            return
        except _TooLongError:
            waited = "" if run.waits_for is None else f": it waited for a slot of {run.waits_for}"
            self._settle(Verdict.infra_error, f"[{self._phase}] not started within {self._limits.start_s:g} s{waited}")
            return
        self._phase = "the agent's work"
        await self._work(client)
        if run.verdict is None:
            self._phase = "grading"
            await self._grade(client)

    async def _connected(self) -> ControlClient:
        """A control channel to an environment. One of our own that cannot be reached is replaced, once."""
        for again in (False, True):
            self._phase = "provisioning"
            self._runtime = runtime = await self._bounded(
                self._scope.enter_async_context(self._provider(self._run.task)), None
            )
            self._phase = "connecting"
            try:
                client = await self._bounded(ControlClient.connect(runtime.address), None)
            except ConnectError as error:
                if again or runtime.health is None:
                    raise
                runtime.health.condemn(error)
                await self._scope.aclose()
            else:
                self._scope.push_async_callback(client.close)
                return client
        raise AssertionError  # the second time returns or raises

    async def _start(self, client: ControlClient) -> None:
        run, began_s = self._run, self._run.trace.now_s()
        started = await self._bounded(client.start(run.task.id, run.task.args), self._limits.start_s)
        run.prompt, run.bindings = started["prompt"], started["bindings"]
        run.capabilities = dict(client.capabilities)
        data = {"phase": "start", "id": run.task.id, "args": run.task.args}
        run.record(Step("task", data=data, started_s=began_s))
        run.record(Step("user", content=run.prompt_text))

    def _waits(self, what: str | None) -> None:
        self._run.waits_for = what

    # The agent ----------------------------------------------------------------------------------------------------

    async def _work(self, client: ControlClient) -> None:
        """Let the agent work for as long as it may; what it leaves goes into the run."""
        run, allowed_s, left_s = self._run, self._limits.agent_s, self._left_s()
        access = Access(client)
        try:
            left = await work(self._agent, run.handed(access), seconds=_least(allowed_s, left_s))
        finally:
            access.revoke()
        run.end, run.error, run.trace.content = left.end, left.error, left.answer
        run.trace.steps.extend(left.steps)
        if left.error is not None:
            run.record(Step("system", error=left.error, data=left.data))
        if left.end == "timeout" and left_s is not None and (allowed_s is None or left_s < allowed_s):
            run.error = None
            self._settle(Verdict.grade_timeout, self._time_up())

    # The grade ----------------------------------------------------------------------------------------------------

    async def _grade(self, client: ControlClient) -> None:
        run, began_s = self._run, self._run.trace.now_s()
        try:
            frame = await self._bounded(client.grade(run.trace.content), self._limits.grade_s)
            changes = frame.pop("changes", {})
            evaluation = EvaluationResult.from_frame(frame)
        except _TimeUpError:
            self._settle(Verdict.grade_timeout, self._time_up())
        except _TooLongError:
            self._settle(Verdict.grade_timeout, f"not graded within {self._limits.grade_s:g} s")
        except (LinkError, EnvironmentFailed, EpisodeError, NoTask, SandboxError) as error:
            self._settle(Verdict.infra_error, await self._said(error))
        except HudsimError as error:
            self._settle(Verdict.grader_error, error.message, traceback_of(error))
        else:
            run.grade, run.verdict = evaluation, evaluation.outcome
            if evaluation.info.get("end") == str(POLICY_LOST) and not client.resumes:
                run.verdict = Verdict.failed  # our own link to that host has held: it was the agent that hung up
            if not run.verdict.valid:
                run.error = "; ".join(filter(None, [evaluation.content or "grading failed", run.error]))
            for name, told in changes.items():
                run.record(Step("task", data={"phase": "files", "workspace": name, **told}, started_s=began_s))
            problems = evaluation.problems()
            data = {"phase": "grade", "answer": run.trace.content, "problems": problems}
            run.record(Step("task", data={k: v for k, v in data.items() if v not in (None, [])}, started_s=began_s))

    def _settle(self, verdict: Verdict, words: str, data: dict[str, Any] | None = None) -> None:
        """A verdict that no grade gave."""
        run = self._run
        run.verdict = verdict
        run.error = words if run.error is None else f"{words}; {run.error}"
        run.record(Step("system", error=words, data=data or {}))

    async def _said(self, error: BaseException) -> str:
        """What broke, in words: that the environment died tells more than that the link to it did."""
        if isinstance(error, LinkError) and self._runtime is not None:
            await asyncio.sleep(_NEWS_S)
            error = (self._runtime.health and self._runtime.health.failure()) or error
        return f"[{self._phase}] {said(error)}"

    # Time ---------------------------------------------------------------------------------------------------------

    async def _bounded(self, work: Awaitable[R], seconds: float | None) -> R:
        """``work`` within its own limit (else _TooLongError) and the run's (else _TimeUpError)."""
        left_s = self._left_s()
        deadline = asyncio.timeout(_least(seconds, left_s))
        try:
            async with deadline:
                return await work
        except TimeoutError:
            if not deadline.expired():
                raise
            is_runs = left_s is not None and (seconds is None or left_s < seconds)
            raise (_TimeUpError if is_runs else _TooLongError) from None

    def _left_s(self) -> float | None:
        return None if self._until_s is None else max(0.0, self._until_s - time.monotonic())

    def _time_up(self) -> str:
        return f"the run's {self._limits.rollout_s:g} s were up during {self._phase}"

    async def _give_back(self, seconds: float) -> None:
        """End the session and return the environment; a run has its verdict whatever becomes of that."""
        try:
            async with asyncio.timeout(seconds):
                await self._scope.aclose()
        except TimeoutError:
            log.warning("run %s: its environment was not given back within %g s", self._run.id, seconds)
        except Exception as error:  # noqa: BLE001 - the run is graded already
            log.warning("run %s: its environment was not given back: %s", self._run.id, said(error))


def _least(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
