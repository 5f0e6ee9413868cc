"""``rollout``: one run from its environment to its grade, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import traceback
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, TypeVar

from hudsim.environment.client import ControlClient
from hudsim.errors import (
    AgentError,
    EnvironmentFailed,
    EpisodeError,
    HudsimError,
    LinkError,
    TaskError,
    UsageError,
)
from hudsim.eval.limits import Limits
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.run import End, Run
from hudsim.eval.runtime import Runtime
from hudsim.eval.trace import Step, Trace
from hudsim.graders import EvaluationResult, Verdict
from hudsim.robot.ending import POLICY_LOST, POLICYS_FAULT

__all__ = ["rollout"]

log = logging.getLogger(__name__)

R = TypeVar("R")

_STOP_S = 5.0
"""How long a stopped agent may take to let go, and an environment to be given back."""
_LONGEST_ANSWER = 16 << 20
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
        except asyncio.CancelledError:
            self._settle(Verdict.cancelled, f"[{self._phase}] cancelled")
            await self._give_back(_HURRY_S)
            raise
        except Exception as error:  # noqa: BLE001 - a run that breaks does not break the others
            self._settle(Verdict.infra_error, await self._said(error))
        run.seconds = round(time.monotonic() - self._began_s, 6)
        await self._give_back(_STOP_S)

    async def _drive(self) -> None:
        run, task = self._run, self._run.task
        try:
            runtime = await self._bounded(self._scope.enter_async_context(self._provider(task)), None)
            self._phase = "connecting"
            self._runtime = runtime
            client = await self._bounded(ControlClient.connect(runtime.address), None)
            self._scope.push_async_callback(client.close)
            run.attach(client)
            self._check_reference(client)
            self._phase = "starting the task"
            await self._start(client)
            self._check_protocols()
        except _TimeUpError:
            self._settle(Verdict.infra_error, self._time_up())
            return
        except _TooLongError:
            self._settle(Verdict.infra_error, f"[{self._phase}] not started within {self._limits.start_s:g} s")
            return
        self._phase = "the agent's work"
        await self._work()
        if run.verdict is None:
            self._phase = "grading"
            await self._grade(client)

    async def _start(self, client: ControlClient) -> None:
        run, began_s = self._run, self._run.trace.now_s()
        started = await self._bounded(client.start(run.task.id, run.task.args), self._limits.start_s)
        run.prompt, run.bindings = started["prompt"], started["bindings"]
        run.capabilities = dict(client.capabilities)
        data = {"phase": "start", "id": run.task.id, "args": run.task.args}
        run.record(Step("task", data=data, started_s=began_s))
        run.record(Step("user", content=run.prompt_text))

    def _check_reference(self, client: ControlClient) -> None:
        if getattr(self._agent, "needs_reference", False) and not client.manifest["reveals"]:
            raise UsageError(
                f"this agent needs the tasks' references, and environment {client.environment} is served without; "
                "serve it with reveal=True (--reveal-references)"
            )

    def _check_protocols(self) -> None:
        """Found by the harness, not by the agent, for which it would be a loss."""
        needed = getattr(self._agent, "needs_protocols", ())
        served = self._run.capabilities.values()
        if needed and not any(capability.protocol in needed for capability in served):
            there_are = ", ".join(f"{c.name} ({c.protocol})" for c in served) or "nothing"
            raise UsageError(f"this agent works on {' or '.join(needed)}; the environment serves {there_are}")

    # The agent ----------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Let the agent work for as long as it may; how that ended goes into the run."""
        run, allowed_s = self._run, self._limits.agent_s
        left_s = self._left_s()
        working = asyncio.create_task(_outcome(self._agent, run), name=f"hudsim-agent-{run.id}")
        try:
            await asyncio.wait({working}, timeout=_least(allowed_s, left_s))
        finally:
            if not working.done():
                await self._stop(working)
        if working.done() and not working.cancelled():
            self._ended(working.result())
            return
        run.end = "timeout"
        if left_s is not None and (allowed_s is None or left_s < allowed_s):
            self._settle(Verdict.grade_timeout, self._time_up())
            return
        run.error = f"the agent was stopped after {allowed_s:g} s"
        run.record(Step("system", error=run.error))

    async def _stop(self, working: asyncio.Task[Any]) -> None:
        working.cancel()
        _, still = await asyncio.wait({working}, timeout=_STOP_S)
        if still:
            log.warning("run %s: the agent does not let itself be stopped; it is left behind", self._run.id)

    def _ended(self, error: BaseException | None) -> None:
        run = self._run
        if error is None:
            run.end = run.end or "done"
            return
        run.end = _end_of(error)
        run.error = _words(error) if isinstance(error, HudsimError) else _raised(error).message
        run.record(Step("system", error=run.error, data=_traceback(error)))

    # The grade ----------------------------------------------------------------------------------------------------

    async def _grade(self, client: ControlClient) -> None:
        run, began_s = self._run, self._run.trace.now_s()
        try:
            frame = await self._bounded(client.grade(self._answer()), self._limits.grade_s)
            evaluation = EvaluationResult.from_frame(frame)
        except _TimeUpError:
            self._settle(Verdict.grade_timeout, self._time_up())
        except _TooLongError:
            self._settle(Verdict.grade_timeout, f"not graded within {self._limits.grade_s:g} s")
        except (LinkError, EnvironmentFailed, EpisodeError) as error:
            self._settle(Verdict.infra_error, await self._said(error))
        except (TaskError, UsageError, HudsimError) as error:
            self._settle(Verdict.grader_error, error.message, _traceback(error))
        else:
            run.grade, run.verdict = evaluation, evaluation.outcome
            if run.end != "lost" and evaluation.info.get("end") == str(POLICY_LOST):
                run.verdict = Verdict.failed  # it hung up by itself: what is lost, an agent loses too
            if not run.verdict.valid:
                run.error = "; ".join(filter(None, [evaluation.content or "grading failed", run.error]))
            problems = evaluation.problems()
            data = {"phase": "grade", "answer": run.trace.content, "problems": problems}
            run.record(Step("task", data={k: v for k, v in data.items() if v not in (None, [])}, started_s=began_s))

    def _answer(self) -> Any:
        """What is graded. An answer that cannot be sent is none, and the agent's own doing."""
        run = self._run
        try:
            if len(json.dumps(run.trace.content)) <= _LONGEST_ANSWER:
                return run.trace.content
            problem = f"the answer is longer than {_LONGEST_ANSWER >> 20} MiB"
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"the answer is no plain JSON: {error}"
        run.trace.content = None
        run.end, run.error = "error", problem
        run.record(Step("system", error=problem))
        return None

    def _settle(self, verdict: Verdict, words: str, data: dict[str, Any] | None = None) -> None:
        """A verdict that no grade gave."""
        run = self._run
        run.verdict = verdict
        run.error = words if run.error is None else f"{words}; {run.error}"
        run.record(Step("system", error=words, data=data or {}))

    async def _said(self, error: Exception) -> str:
        """What broke, in words: that the environment died tells more than that the link to it did."""
        if isinstance(error, LinkError) and self._runtime is not None:
            await asyncio.sleep(_NEWS_S)
            error = self._runtime.failure() or error
        return f"[{self._phase}] {_words(error)}"

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
        self._run.attach(None)
        try:
            async with asyncio.timeout(seconds):
                await self._scope.aclose()
        except TimeoutError:
            log.warning("run %s: its environment was not given back within %g s", self._run.id, seconds)
        except Exception as error:  # noqa: BLE001 - the run is graded already
            log.warning("run %s: its environment was not given back: %s", self._run.id, _words(error))


async def _outcome(agent: Agent, run: Run) -> BaseException | None:
    """What the agent raised; None if it returned. SystemExit ends the agent, not the harness."""
    me = asyncio.current_task()
    try:
        await agent(run)
    except asyncio.CancelledError as error:
        if me is None or me.cancelling():
            raise
        return error  # nobody cancelled it: it raised that by itself
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is anybody's agent
        return error
    return None


def _end_of(error: BaseException) -> End:
    is_lost = isinstance(error, LinkError | EpisodeError) and error.name not in POLICYS_FAULT
    return "lost" if is_lost else "error"


def _words(error: BaseException) -> str:
    return error.message if isinstance(error, HudsimError) else f"{type(error).__name__}: {error}"


def _raised(error: BaseException) -> AgentError:
    frames = traceback.extract_tb(error.__traceback__)
    place = frames[-1] if frames else None
    where = "" if place is None else f" ({place.filename}:{place.lineno} in {place.name})"
    return AgentError(f"the agent raised {_words(error)}{where}")


def _traceback(error: BaseException) -> dict[str, Any]:
    if isinstance(error, HudsimError):
        told = error.data.get("traceback")
        return {"traceback": told} if told else {}
    return {"traceback": "".join(traceback.format_exception(error, limit=-8))}


def _least(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
