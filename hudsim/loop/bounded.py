"""``bounded``: waiting for what others wrote, which may raise anything and need not let itself be cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

__all__ = ["bounded", "is_cancellation", "let_go"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_GRACE_S = 1.0

_left_behind: set[asyncio.Task[Any]] = set()  # the loop itself holds its tasks by weak references


def is_cancellation(error: BaseException) -> bool:
    """Whether ``error`` is the cancellation of the task that runs now, and not one that somebody has raised."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def bounded(work: Callable[[], Awaitable[T]], what: str, *, timeout_s: float | None) -> T:
    """What ``work()`` gives, in a task of its own; ``timeout_s`` None: however long it takes.

    When the time is up, or whoever waits is cancelled, it is cancelled; if it goes on nevertheless, it is left behind
    with a warning that names ``what``. Raises TimeoutError, or whatever it raised, SystemExit and the like included.
    """
    task = asyncio.create_task(_outcome(work), name=f"hudsim: {what}")
    try:
        await asyncio.wait({task}, timeout=timeout_s)
    finally:
        if not task.done():
            await let_go(task, what)
    if not task.done() or task.cancelled():
        raise TimeoutError(f"{what}: not done within {timeout_s:g} s")
    value, error = task.result()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # there is one where there is no error


async def let_go(task: asyncio.Task[Any], what: str, *, timeout_s: float = _GRACE_S) -> None:
    """Cancel ``task`` and wait for its end; if it goes on for ``timeout_s``, it is left behind with a warning."""
    task.cancel()
    await asyncio.wait({task}, timeout=timeout_s)
    if not task.done():
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
        log.warning("%s does not let itself be stopped; it is left behind", what)


async def _outcome(work: Callable[[], Awaitable[T]]) -> tuple[T | None, BaseException | None]:
    """As a value: a task that ends in SystemExit or KeyboardInterrupt takes its loop with it."""
    try:
        return await work(), None
    except BaseException as error:
        if is_cancellation(error):
            raise
        return None, error
