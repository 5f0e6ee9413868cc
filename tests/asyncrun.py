"""Coroutines as tests: on the event loop that hudsim runs on, with an end to every wait."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from hudsim.loop.run import new_event_loop

__all__ = ["on_loop", "within"]

P = ParamSpec("P")


def within(
    seconds: float, main: Coroutine[Any, Any, None], loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
) -> None:
    """Run ``main``; an error if it takes longer than ``seconds``, or leaves a socket open on the loop."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await main

    runner = asyncio.Runner(loop_factory=loop)
    try:
        runner.run(bounded())
    finally:
        # A warning that is an error would be raised inside uvloop's close, which then waits for ever.
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always")
            runner.close()
    assert not left, "\n".join(str(warning.message) for warning in left)


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        within(25.0, test(*args, **kwargs))

    return run
