"""``Recorder``: what a run keeps of an episode while it is played: fingerprints, video."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hudsim.contract import Contract
from hudsim.robot.bridge import Array
from hudsim.robot.hashchain import HashChain
from hudsim.robot.video import VideoWriter
from hudsim.wire.session import Heard

__all__ = ["Recorder"]

_DIGEST_BYTES = 32
_BEHIND = 64  # ticks that the slowest writer may lag before the episode waits for it


class Recorder:
    """Gives each observation to the writers, which work on threads of their own; waits if one falls far behind.

    problem
        Why something could not be written (a full disk); None so far. The episode goes on without it.
    """

    def __init__(self, contract: Contract, *, hashes: bool, video: Path | None) -> None:
        self.chain = HashChain(contract) if hashes else None
        self.problem: str | None = None
        self._path = video
        self._video = VideoWriter(video, contract) if video is not None else None
        self._behind: deque[Future[Any]] = deque()

    async def step(self, heard: Heard, action: Array | None) -> None:
        """One observation and the action sent for it."""
        if self.chain is not None:
            self._behind.append(self.chain.add(heard.data, heard.reward, action, _digests(heard.meta)))
        if self._video is not None:
            self._behind.append(self._video.add(heard.data, max(0, heard.index)))
        while len(self._behind) > _BEHIND:
            await self._written(asyncio.wrap_future(self._behind.popleft()))

    async def finish(self, ticks_path: Path | None) -> tuple[str, str | None] | None:
        """Wait for the writers; the episode's two fingerprints, if they were asked for.

        ``ticks_path``: where to keep the per-tick ones, a JSON line each (None: nowhere).
        """
        if self._video is not None:
            await self._written(asyncio.to_thread(self._video.close))
        if self.chain is None:
            return None
        fingerprints = await asyncio.to_thread(self.chain.finish)
        if ticks_path is not None:
            lines = "".join(json.dumps(tick) + "\n" for tick in self.chain.ticks)
            await self._written(asyncio.to_thread(ticks_path.write_text, lines), ticks_path)
        return fingerprints

    async def _written(self, work: Awaitable[Any], path: Path | None = None) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the encoder has errors of its own beside OSError
            self.problem = self.problem or f"{path or self._path}: {getattr(error, 'strerror', None) or error}"
            if path is None:
                self._video = None


def _digests(meta: Mapping[str, Any]) -> dict[str, bytes]:
    """What the world says its images hashed to, before they were encoded for the way here."""
    said = meta.get("digests")
    known = said.items() if isinstance(said, Mapping) else ()
    return {name: value for name, value in known if isinstance(value, bytes) and len(value) == _DIGEST_BYTES}
