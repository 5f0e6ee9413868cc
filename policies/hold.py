"""``Hold``: stay where you are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["Hold"]


class Hold(Model):
    """Commands each absolute target to be the value that is observed under its name, and everything else to be zero.

    A number of the action that the contract repeats on a starved tick is an absolute target; it is looked for by
    name in the observations. Zero is brought within the limits.

    chunk
        Actions a chunk, all the same.
    """

    def __init__(self, *, chunk: int = 1) -> None:
        if chunk < 1:
            raise UsageError(f"a chunk of {chunk} actions; expected at least 1")
        self._chunk = chunk
        self._rest: Array | None = None

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        action = contract.action
        checks = contract.compile()
        self._check, self._rest = checks.action, checks.hold(None)
        self._sources: list[tuple[int, str, int]] = []
        if len(self._rest.shape) != 1 or not action.names or self._rest.dtype.kind != "f":
            return
        holds = action.hold or []
        for index, name in enumerate(action.names):
            if len(holds) == len(action.names) and holds[index] != "repeat":
                continue
            for feature, shown in contract.observations.items():
                if name in (shown.names or ()) and len(shown.shape or ()) == 1:
                    self._sources.append((index, feature, list(shown.names or ()).index(name)))
                    break

    def infer(self, batch: Mapping[str, Any]) -> Array:
        """[N, chunk, *action shape]."""
        if self._rest is None:
            raise UsageError("hold is not bound to a world yet")
        count = len(batch["prompt"]) if "prompt" in batch else len(next(iter(batch.values())))
        actions = np.repeat(self._rest[np.newaxis], count, axis=0)
        for index, feature, place in self._sources:
            if feature in batch:  # an adapter may leave it out
                actions[:, index] = batch[feature][:, place]
        return np.repeat(actions[:, np.newaxis], self._chunk, axis=1)
