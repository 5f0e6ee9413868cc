"""``to_its_end``: blocking work on files that nobody leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["to_its_end"]

P = ParamSpec("P")
R = TypeVar("R")


async def to_its_end(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What ``work`` gives, done on a thread. Whoever is cancelled waits until it has ended, and is cancelled then.

    What goes on behind somebody's back writes to folders that are being removed, or are another's by then.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # nobody else asks for it
        raise
