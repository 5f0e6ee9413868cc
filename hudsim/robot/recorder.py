"""``Recorder``: what a run keeps of an episode while it is played: fingerprints, video."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from hudsim.contract import Contract
from hudsim.robot.bridge import Array
from hudsim.robot.hashchain import HashChain
from hudsim.robot.video import VideoWriter
from hudsim.wire.session import Heard

__all__ = ["Recorder"]

_BEHIND = 64  # ticks that the slowest writer may lag before the episode waits for it


class Recorder:
    """Gives each observation to the writers, which work on threads of their own; waits if one falls far behind."""

    def __init__(self, contract: Contract, *, hashes: bool, video: Path | None) -> None:
        self.chain = HashChain(contract) if hashes else None
        self._video = VideoWriter(video, contract) if video is not None else None
        self._behind: deque[Future[None]] = deque()

    async def step(self, heard: Heard, action: Array | None) -> None:
        """One observation and the action sent for it."""
        if self.chain is not None:
            self._behind.append(self.chain.add(heard.data, heard.reward, action))
        if self._video is not None:
            self._behind.append(self._video.add(heard.data, max(0, heard.index)))
        while len(self._behind) > _BEHIND:
            await asyncio.wrap_future(self._behind.popleft())

    async def finish(self, ticks_path: Path | None) -> tuple[str, str | None] | None:
        """Wait for the writers; the episode's two fingerprints, if they were asked for.

        ``ticks_path``: where to keep the per-tick ones, a JSON line each (None: nowhere).
        """
        if self._video is not None:
            await asyncio.to_thread(self._video.close)
        if self.chain is None:
            return None
        fingerprints = await asyncio.to_thread(self.chain.finish)
        if ticks_path is not None:
            lines = "".join(json.dumps(tick) + "\n" for tick in self.chain.ticks)
            await asyncio.to_thread(ticks_path.write_text, lines)
        return fingerprints
