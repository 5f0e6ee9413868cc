"""``stubborn``: work that swallows its cancellation."""

from __future__ import annotations

import asyncio
import contextlib

__all__ = ["stubborn"]


async def stubborn(released: asyncio.Event) -> None:
    """Goes on until ``released`` is set, however often it is cancelled."""
    while not released.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await released.wait()
