"""``Newest``: reads a link all the time and keeps the newest frame only."""

from __future__ import annotations

import asyncio
import time

from hudsim.errors import HudsimError
from hudsim.net import Link

__all__ = ["Newest"]


class Newest:
    """For a world that sends whether or not it is asked: what is taken is never older than it need be."""

    def __init__(self, link: Link) -> None:
        self._link = link
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
                self._frame = await self._link.receive(), time.monotonic_ns()
                self._arrived.set()
        except HudsimError as error:
            self._ended = error
            self._arrived.set()
