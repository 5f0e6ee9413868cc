"""``HashChain``: a fingerprint of an episode, tick by tick, computed off the tick's path."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.loop import Worker
from hudsim.robot.bridge import Array

__all__ = ["HashChain"]


class HashChain:
    """Two chains of SHA-256 over an episode's ticks: the state's and the images'.

    Link n hashes link n - 1, the features, the action sent for them and the reward. The images stand apart
    because a software renderer and a graphics card round differently; the state does not.

    ticks
        For each observation the first 8 bytes (hex) of the hash of each feature, of ``action`` and of ``reward``:
        what tells *where* two runs part.
    """

    def __init__(self, contract: Contract) -> None:
        self.ticks: list[dict[str, str]] = []
        self._images = {name for name, feature in contract.observations.items() if feature.is_image}
        self._state, self._image = hashlib.sha256(), hashlib.sha256()
        self._worker = Worker("hash")
        self._last: Future[None] | None = None

    def add(self, data: Mapping[str, Array], reward: float, action: Array | None) -> Future[None]:
        """Queue one tick; the arrays must stay as they are until the future is done."""
        self._last = self._worker.submit(self._add, data, reward, action)
        return self._last

    def finish(self) -> tuple[str, str | None]:
        """Wait for what was queued; the two fingerprints as hex, of the state and of the images (None: no images)."""
        if self._last is not None:
            self._last.result()
        self._worker.stop()
        return self._state.hexdigest(), self._image.hexdigest() if self._images else None

    def _add(self, data: Mapping[str, Array], reward: float, action: Array | None) -> None:
        tick: dict[str, str] = {}
        for name, array in data.items():
            digest = _digest(array)
            tick[name] = digest[:8].hex()
            (self._image if name in self._images else self._state).update(digest)
        tick["reward"] = struct.pack("<d", reward).hex()
        self._state.update(struct.pack("<d", reward))
        if action is not None:
            digest = _digest(action)
            tick["action"] = digest[:8].hex()
            self._state.update(digest)
        self.ticks.append(tick)


def _digest(array: Any) -> bytes:
    contiguous = np.ascontiguousarray(array)
    digest = hashlib.sha256(f"{contiguous.dtype.str}{contiguous.shape}".encode())
    digest.update(contiguous.data)
    return digest.digest()
