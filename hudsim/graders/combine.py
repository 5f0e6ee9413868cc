"""``combine``: many subscores into one grade."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, cast

from hudsim.errors import HudsimError, UsageError
from hudsim.given import refusal
from hudsim.graders.evidence import evident
from hudsim.graders.results import EvaluationResult, SubScore
from hudsim.graders.verdict import Verdict

__all__ = ["combine", "combine_all", "combine_any"]


async def combine(*items: SubScore | Awaitable[SubScore]) -> EvaluationResult:
    """Wait for all ``items`` at once, and weigh them.

    Positive weights are scaled to make 1, negative ones (penalties) are kept as they are: the reward is
    ``sum(weight * value)``, never clamped, so that what lies below 0 stays different from 0. A name that is there
    more than once gets a number: ``tests-1, tests-2``.

    A verdict for which one of them has evidence (``info["verdict"]``: ``tampered``, ``resource_limit``,
    ``grade_timeout``; the gravest if several do) becomes the grade's, and the reward is 0, or what is below.

    One that raises ends the others, and its error is raised with a note that says which it was. Raises
    :class:`~hudsim.errors.UsageError` for no items, for no positive weight, and for what is no SubScore.
    """
    return _weighed(await _together(items))


def combine_any(weight: float, subscores: list[SubScore], *, name: str = "any") -> SubScore:
    """The best of ``subscores``, which are kept as its children; none is a :class:`~hudsim.errors.UsageError`.

    It says ``tampered`` if one of them does, and is 0 then; another verdict only if it is that of the best.
    """
    return _parent(name, weight, subscores, max)


def combine_all(weight: float, subscores: list[SubScore], *, name: str = "all") -> SubScore:
    """The worst of ``subscores``, which are kept as its children; none is a :class:`~hudsim.errors.UsageError`.

    It says ``tampered`` if one of them does, and is 0 then; another verdict only if it is that of the worst.
    """
    return _parent(name, weight, subscores, min)


async def _together(items: Sequence[SubScore | Awaitable[SubScore]]) -> list[SubScore]:
    tasks: list[asyncio.Task[SubScore]] = []
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(_one(item, f"item {n} of {len(items)}")) for n, item in enumerate(items, 1)]
    except BaseExceptionGroup as errors:
        failed = errors.exceptions[0]  # the first to fail; the others were cancelled because of it
    if failed is not None:
        raise failed  # out here it keeps its own cause and context
    return [task.result() for task in tasks]


async def _one(item: Any, which: str) -> SubScore:
    which = f"combine: {which}, {getattr(item, '__qualname__', type(item).__name__)}"
    if not isinstance(item, Awaitable):
        return _subscore(item, which)
    try:
        got = await item
    except asyncio.CancelledError:
        if cast("asyncio.Task[SubScore]", asyncio.current_task()).cancelling():
            raise
        raise HudsimError(f"{which}: cancelled by somebody else") from None
    except (SystemExit, KeyboardInterrupt) as error:  # a task that ends in one takes its loop with it
        raise HudsimError(f"{which}: raised {type(error).__name__}: {error}") from error
    except Exception as error:
        error.add_note(which)
        raise
    return _subscore(got, which)


def _subscore(got: Any, which: str) -> SubScore:
    if not isinstance(got, SubScore):
        hint = " (await it first)" if isinstance(got, Awaitable) else ""
        raise UsageError(f"{which}: got a {type(got).__name__}, expected a SubScore{hint}")
    return got


def _weighed(subscores: Sequence[SubScore]) -> EvaluationResult:
    largest = max((subscore.weight for subscore in subscores), default=0.0)
    if largest <= 0:
        there_are = ", ".join(f"{subscore.name} {subscore.weight:g}" for subscore in subscores) or "no subscores"
        raise UsageError(f"combine: got {there_are}, expected at least one of positive weight")
    # Divided last, and summed exactly: seven sevenths make 1.0, not 0.9999999999999998, which would be no pass.
    parts = [max(subscore.weight / largest, 0.0) for subscore in subscores]
    whole = math.fsum(parts)
    gained = math.fsum(part * subscore.value for part, subscore in zip(parts, subscores, strict=True)) / whole
    lost = sum(subscore.weight * subscore.value for subscore in subscores if subscore.weight < 0)
    weights = [
        part / whole if subscore.weight > 0 else subscore.weight
        for part, subscore in zip(parts, subscores, strict=True)
    ]
    named = [
        subscore.model_copy(update={"name": name, "weight": weight})
        for subscore, name, weight in zip(subscores, _unique(subscores), weights, strict=True)
    ]
    verdict, reward = evident(named), gained + lost
    return EvaluationResult(reward=reward if verdict is None else min(reward, 0.0), subscores=named, verdict=verdict)


def _parent(name: str, weight: float, subscores: Sequence[SubScore], choose: Any) -> SubScore:
    if not isinstance(subscores, Iterable):
        raise refusal(name, subscores, "a list of subscores")
    if not subscores:
        raise UsageError(f"{name}: got no subscores, expected at least one")
    given = [_subscore(item, f"{name}: item {n} of {len(subscores)}") for n, item in enumerate(subscores, 1)]
    children = [one.model_copy(update={"name": unique}) for one, unique in zip(given, _unique(given), strict=True)]
    value = choose(child.value for child in children)
    verdict = evident(children)
    if verdict is Verdict.tampered:
        value = 0.0
    elif verdict is not None:
        verdict = evident(child for child in children if child.value == value)
    info = None if verdict is None else {"verdict": verdict.value}
    return SubScore(name=name, weight=weight, value=value, children=children, info=info)


def _unique(subscores: Sequence[SubScore]) -> list[str]:
    """Their names, each that is there more than once with the next number that makes it a new one."""
    counts = Counter(subscore.name for subscore in subscores)
    taken = set(counts)
    numbers = {name: itertools.count(1) for name in counts}
    out = []
    for subscore in subscores:
        name = subscore.name
        if counts[name] > 1:
            name = next(new for n in numbers[name] if (new := f"{subscore.name}-{n}") not in taken)
            taken.add(name)
        out.append(name)
    return out
