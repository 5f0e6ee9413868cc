"""``work``: the agent's part of a run, from the call to what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import traceback
from dataclasses import dataclass, field
from typing import Any

from hudsim.errors import EpisodeError, HudsimError, LinkError
from hudsim.eval.protocols import Agent
from hudsim.eval.run import End, Run
from hudsim.eval.trace import Step, Trace
from hudsim.graders.number import unboxed
from hudsim.robot.ending import POLICYS_FAULT

__all__ = ["Left", "is_interrupt", "said", "traceback_of", "work"]

log = logging.getLogger(__name__)

_STOP_S = 5.0
"""How long a stopped agent may take to let go."""
_LONGEST_ANSWER = 16 << 20
_LONGEST_WORDS = 2000


@dataclass
class Left:
    """What an agent leaves behind: the record's own plain values, whatever the agent does to its run later.

    end
        How it ended.
    answer
        Plain JSON. None: none that can be graded.
    steps
        What it recorded.
    error
        What went wrong, in words. None: nothing.
    data
        More about that: its traceback.
    """

    end: End
    answer: Any = None
    steps: list[Step] = field(default_factory=list)
    error: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


async def work(agent: Agent, theirs: Run, *, seconds: float | None) -> Left:
    """Call ``agent`` with ``theirs``, its own copy of the run, and wait for so long at most; None: as long as it takes.

    Whatever it raises is its own end, and in what is left. If its time is up, what it leaves is what was there then.
    """
    known = len(theirs.trace.steps)
    working = asyncio.create_task(_called(agent, theirs, known), name=f"hudsim-agent-{theirs.id}")
    try:
        await asyncio.wait({working}, timeout=seconds)
        if working.done():
            return working.result()
        left = Left("timeout", error=f"the agent was stopped after {seconds or 0.0:g} s")
        _take(left, theirs, known)
        return left
    finally:
        if not working.done():
            await _stop(working, theirs.id)


async def _called(agent: Agent, theirs: Run, known: int) -> Left:
    """What it leaves, taken the moment that it is done. Only an interrupt of the whole program goes on."""
    try:
        await agent(theirs)
        left = Left("max_steps" if getattr(theirs, "end", None) == "max_steps" else "done")
    except BaseException as error:
        if is_interrupt(error):
            raise
        is_lost = isinstance(error, LinkError | EpisodeError) and error.name not in POLICYS_FAULT
        left = Left("lost" if is_lost else "error", error=_words(error), data=traceback_of(error))
    _take(left, theirs, known)
    return left


async def _stop(working: asyncio.Task[Any], run_id: str) -> None:
    working.cancel()
    _, still = await asyncio.wait({working}, timeout=_STOP_S)
    if still:
        log.warning("run %s: the agent does not let itself be stopped; it is left behind", run_id)


def _take(left: Left, theirs: Run, known: int) -> None:
    """Copy the answer and the steps. What cannot be kept is none, and the agent's own doing."""
    trace = getattr(theirs, "trace", None)
    if not isinstance(trace, Trace):
        _spoil(left, f"run.trace is a {type(trace).__name__}, expected the Trace that it was")
        return
    try:
        text = json.dumps(trace.content, default=unboxed, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        _spoil(left, f"the answer is no plain JSON: {said(error)}")
    else:
        if len(text) > _LONGEST_ANSWER:
            _spoil(left, f"the answer is longer than {_LONGEST_ANSWER >> 20} MiB")
        else:
            left.answer = json.loads(text)
    try:
        left.steps = [_kept(step) for step in trace.steps[known:]]
    except TypeError as error:
        _spoil(left, f"run.trace.steps is no list any more: {said(error)}")


def _spoil(left: Left, problem: str) -> None:
    left.end = left.end if left.end == "timeout" else "error"
    left.error = problem if left.error is None else f"{problem}; {left.error}"


def _kept(step: Any) -> Step:
    try:
        return Step.from_json(json.loads(json.dumps(step.to_json(), default=unboxed)))
    except Exception as error:  # noqa: BLE001 - whatever an agent has put there
        return Step("system", error=f"a step that cannot be kept: {said(error)}")


def is_interrupt(error: BaseException) -> bool:
    """Whether ``error`` may be somebody's Ctrl-C, and not a KeyboardInterrupt that the code which runs here has raised.

    ``hudsim.loop.run`` raises none while its loop runs; ``asyncio.run`` at the second Ctrl-C, after it has cancelled
    its main task; Python's own handler at the first.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or any(task.cancelling() for task in asyncio.all_tasks())


def _words(error: BaseException) -> str:
    """What an agent raised, and where."""
    if isinstance(error, HudsimError):
        return said(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"the agent raised {said(error)}{where}"


def said(error: BaseException) -> str:
    """An error in words that can be kept and printed, whatever it is; ours without the name of its class."""
    try:
        words = error.message if isinstance(error, HudsimError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its __str__ is anybody's
        words = f"{type(error).__name__}, which cannot be put into words"
    return words.encode(errors="replace").decode()[:_LONGEST_WORDS]


def traceback_of(error: BaseException) -> dict[str, Any]:
    """``{"traceback": …}``; empty if there is none to show."""
    if isinstance(error, HudsimError):
        told = error.data.get("traceback")
        return {"traceback": told} if isinstance(told, str) else {}
    try:
        lines = "".join(traceback.format_exception(error, limit=-8))
    except Exception:  # noqa: BLE001 - as above
        return {}
    return {"traceback": lines.encode(errors="replace").decode()[: 8 * _LONGEST_WORDS]}
