"""``time_limit``: how long sandboxes may work, on a machine that may have no processor for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from hudsim.coding.stopwatch import Stopwatch, times_of
from hudsim.errors import SandboxError
from hudsim.graders.ground import Fresh

__all__ = ["time_limit"]

_LOOK_S = 0.5
_MOST_WALL = 10.0
"""How many times their time they may take on the clock."""


@contextlib.asynccontextmanager
async def time_limit(limit_s: float, boxes: Sequence[Fresh]) -> AsyncIterator[None]:
    """Ends the block when ``boxes``, which are up, have had ``limit_s`` for their work, by :class:`TimeoutError`.

    That is the solution's doing. A machine on which they do not get so far within ten times as long is not:
    :class:`~hudsim.errors.SandboxError`, unless they met a limit, or ran for that time, however they stood in line.
    While it cannot be seen what they had, as without a free descriptor, the clock's time is theirs.
    """
    sandboxes = [await box.sandbox() for box in boxes]
    watch = Stopwatch(lambda: times_of(sandboxes))
    had_s = 0.0

    async def look() -> None:
        nonlocal had_s
        while had_s < limit_s and watch.wall_s < _MOST_WALL * limit_s:
            began_s = watch.wall_s
            await asyncio.sleep(min(_LOOK_S, limit_s - had_s))
            try:
                had_s = await asyncio.to_thread(watch.look)
            except Exception:  # noqa: BLE001 - whatever it is, the block must have an end
                had_s += watch.wall_s - began_s
        time.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as time:
            looking = asyncio.create_task(look(), name="hudsim-grade-time")
            try:
                yield
            finally:
                looking.cancel()
    except TimeoutError:
        if max(had_s, watch.ran_s) >= limit_s or any(box.evidence() for box in boxes):
            raise
        raise SandboxError(
            f"this machine is too busy to grade on: in {watch.wall_s:.0f} s the tests had {had_s:.1f} s of the "
            f"{limit_s:g} s that they may take; run fewer at once"
        ) from None
