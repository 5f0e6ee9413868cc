"""``RandomActions``: anything that the contract allows."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from hudsim.contract import Contract
from hudsim.contract.bounds import bounds
from hudsim.errors import UsageError
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["RandomActions"]


class RandomActions(Model):
    """Uniform between the limits, both ends included; standard normal where there is no limit.

    A number with one limit is normal and brought within it. The action is a function of ``seed``, the fork and the
    observation's bytes: the same episode gives the same actions, however many agents share the model.

    chunk
        Actions a chunk, each drawn for itself.
    """

    def __init__(self, *, seed: int = 0, chunk: int = 1) -> None:
        if chunk < 1:
            raise UsageError(f"a chunk of {chunk} actions; expected at least 1")
        self._seed, self._chunk = seed, chunk
        self._stream, self._streams = 0, itertools.count(1)
        self._shape: tuple[int, ...] | None = None

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        action = contract.action
        self._shape, self._dtype = action.shape or (), np.dtype(action.dtype)
        if self._dtype.kind == "b":
            return
        low, high = (action.limits.min, action.limits.max) if action.limits is not None else (None, None)
        self._low, self._high = bounds(low, high, self._shape, self._dtype)

    def fork(self) -> Self:
        """As any model's; and its draws are its own, or all runs of a group would be one."""
        twin = super().fork()
        vars(twin)["_stream"] = next(self._streams)
        return twin

    def infer(self, batch: Mapping[str, Any]) -> Array:
        """[N, chunk, *action shape] of the action's dtype."""
        if self._shape is None:
            raise UsageError("random is not bound to a world yet")
        shown = sorted(batch.keys() - {"unexecuted_chunk", "delay"})  # the agent's, not the world's
        arrays = {name: batch[name] for name in shown if isinstance(batch[name], np.ndarray) and batch[name].ndim}
        count = len(batch["prompt"]) if "prompt" in batch else len(next(iter(arrays.values())))
        return np.stack([self._draw(_digest(arrays, row, count)) for row in range(count)])

    def _draw(self, digest: int) -> Array:
        rng = np.random.default_rng([self._seed, self._stream, digest])
        shape = (self._chunk, *(self._shape or ()))
        if self._dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(self._dtype)
        if self._dtype.kind in "iu":
            return rng.integers(self._low, self._high, shape, dtype=self._dtype.type, endpoint=True)
        low, high = self._low.astype(np.float64), self._high.astype(np.float64)
        bounded = np.isfinite(low) & np.isfinite(high)
        share, normal = rng.random(shape), rng.standard_normal(shape)
        with np.errstate(all="ignore"):
            drawn = np.where(bounded, low * (1 - share) + high * share, normal)
        return np.clip(drawn, low, high).astype(self._dtype)


def _digest(arrays: Mapping[str, Array], row: int, count: int) -> int:
    """A number that the bytes of one row of every feature make."""
    digest = 0
    for name, array in arrays.items():
        if len(array) == count:
            digest = zlib.crc32(np.ascontiguousarray(array[row]).tobytes(), zlib.crc32(name.encode(), digest))
    return digest
