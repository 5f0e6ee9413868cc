"""``PendulumBridge``: keep a pole upright on a cart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hudsim.bridges.mjcf import MjcfBridge, Outcome
from hudsim.errors import UsageError

__all__ = ["PendulumBridge"]

_FALLEN = 0.2
"""Angle in rad from which the pole counts as fallen; the classic benchmark's."""


class PendulumBridge(MjcfBridge):
    """A pole on a cart, 50 Hz: the action pushes the cart, [-3, 3] × 100 N.

    Each tick upright gives reward 1. Terminated when the pole leans more than 0.2 rad; success is to be still
    upright at ``max_ticks``, where the episode is truncated. A planner gets the model and the cost
    ``inverted_pendulum`` from the capability.

    max_ticks
        Ticks to stay up.
    spread
        The start's angle (rad), position (m) and velocities are uniform in ±spread.
    options
        As :class:`~hudsim.bridges.mjcf.MjcfBridge` has them (``cameras``, ``width``, ``privileged`` …).
    """

    def __init__(self, *, max_ticks: int = 1000, spread: float = 0.05, **options: Any) -> None:
        if not 0 <= spread < _FALLEN or max_ticks < 1:
            raise UsageError(f"spread {spread}, max_ticks {max_ticks}; expected 0 to {_FALLEN}, at least 1")
        options.setdefault("prompt", "keep the pole upright")
        super().__init__(Path(__file__).with_suffix(".xml"), max_ticks=max_ticks, **options)
        self._spread, self._goal = spread, max_ticks

    def randomise(self, rng: np.random.Generator) -> None:
        self.data.qpos[:] = rng.uniform(-self._spread, self._spread, self.model.nq)
        self.data.qvel[:] = rng.uniform(-self._spread, self._spread, self.model.nv)

    def outcome(self) -> Outcome:
        up = bool(abs(self.data.qpos[1]) <= _FALLEN)
        return Outcome(reward=float(up), terminated=not up, success=up and self.ticks >= self._goal)

    def capability_params(self) -> dict[str, Any]:
        return {**super().capability_params(), "cost": "inverted_pendulum"}
