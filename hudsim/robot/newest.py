"""``Newest``: reads a link all the time and keeps the newest frame only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from hudsim.errors import HudsimError
from hudsim.net import Link

__all__ = ["Newest"]


class Newest:
    """For a world that sends whether or not it is asked: what is taken is never older than it need be.

    ``on_skip`` gets each frame that was never taken.
    """

    def __init__(self, link: Link, on_skip: Callable[[bytes | str], object]) -> None:
        self._link, self._on_skip = link, on_skip
        self._frame: tuple[bytes | str, int] | None = None
        self._ended: HudsimError | None = None
        self._arrived = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="hudsim-robot-reader")

    async def take(self) -> tuple[bytes | str, int]:
        """The newest frame and when it came (monotonic, ns), once there is one that was not taken.

        Raises what ended the link, after the last frame.
        """
        await self._arrived.wait()
        frame = self._frame
        if frame is None:
            assert self._ended is not None
            raise self._ended
        self._frame = None
        if self._ended is None:
            self._arrived.clear()
        return frame

    async def close(self) -> None:
        """Stop reading. Idempotent."""
        self._reader.cancel()
        await asyncio.wait([self._reader])

    async def _read(self) -> None:
        try:
            while True:
                frame = await self._link.receive(), time.monotonic_ns()
                skipped, self._frame = self._frame, frame
                self._arrived.set()
                if skipped is not None:
                    self._on_skip(skipped[0])
        except HudsimError as error:
            self._ended = error
            self._arrived.set()
