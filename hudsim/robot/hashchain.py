"""``HashChain``: a fingerprint of an episode, tick by tick, computed off the tick's path."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.loop import Worker
from hudsim.robot.bridge import Array

__all__ = ["HashChain", "digest"]

_NONE: Mapping[str, bytes] = MappingProxyType({})


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

    def add(
        self, data: Mapping[str, Array], reward: float, action: Array | None, known: Mapping[str, bytes] = _NONE
    ) -> Future[None]:
        """Queue one tick; the arrays must stay as they are until the future is done.

        ``known``: the :func:`digest` of features that are not here as the world showed them.
        """
        self._last = self._worker.submit(self._add, data, reward, action, known)
        return self._last

    def finish(self) -> tuple[str, str | None]:
        """Wait for what was queued; the two fingerprints as hex, of the state and of the images (None: no images)."""
        if self._last is not None:
            self._last.result()
        self._worker.stop()
        return self._state.hexdigest(), self._image.hexdigest() if self._images else None

    def _add(self, data: Mapping[str, Array], reward: float, action: Array | None, known: Mapping[str, bytes]) -> None:
        tick: dict[str, str] = {}
        for name, array in data.items():
            hashed = known.get(name) or digest(array)
            tick[name] = hashed[:8].hex()
            (self._image if name in self._images else self._state).update(hashed)
        tick["reward"] = struct.pack("<d", reward).hex()
        self._state.update(struct.pack("<d", reward))
        if action is not None:
            hashed = digest(action)
            tick["action"] = hashed[:8].hex()
            self._state.update(hashed)
        self.ticks.append(tick)


def digest(array: Any) -> bytes:
    """SHA-256 of an array: of its dtype, shape and values in C order."""
    contiguous = np.ascontiguousarray(array)
    sha = hashlib.sha256(f"{contiguous.dtype.str}{contiguous.shape}".encode())
    sha.update(contiguous.data)
    return sha.digest()
