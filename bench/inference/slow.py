"""``Slow``: the script, after as long as a model would take."""

from __future__ import annotations

import time
from typing import Any

from hudsim.policies.scripted import Scripted
from hudsim.robot.bridge import Array

__all__ = ["Slow"]


class Slow(Scripted):
    """``seconds``: from the observation to the chunk, at least. ``chunk``: as of Scripted."""

    def __init__(self, seconds: float, chunk: int) -> None:
        super().__init__(chunk)
        self._seconds = seconds

    def infer(self, batch: Any) -> Array:
        due_s = time.monotonic() + self._seconds
        chunk = super().infer(batch)
        time.sleep(max(0.0, due_s - time.monotonic()))
        return chunk
