"""``StillBridge``: a world whose step and rendering cost nothing: what is measured is the way there and back."""

from __future__ import annotations

import numpy as np

from hudsim.contract import Contract
from hudsim.robot.bridge import Array, Observation, RobotBridge

__all__ = ["StillBridge"]

_PATIENCE_S = 3600.0  # it waits while the others have their turns


class StillBridge(RobotBridge):
    """Shows the arrays of ``file``, prepared; each tick writes its number into the state."""

    def __init__(self, file: str) -> None:
        with np.load(file) as arrays:
            self._data: dict[str, Array] = {f"observation/{name}": array[np.newaxis] for name, array in arrays.items()}
        observations = {
            name: {"role": "observation", "dtype": str(array.dtype), "shape": list(array.shape[1:])}
            | ({"type": "rgb"} if array.ndim == 4 else {})
            for name, array in self._data.items()
        }
        limits = {"min": [-3.0] * 8, "max": [3.0] * 8}
        action = {"role": "action", "dtype": "float32", "shape": [8], "limits": limits}
        self.contract = Contract.load(
            {
                "schema": "hudsim/1",
                "control_rate": 50.0,
                "timing": {"policy_deadline_s": _PATIENCE_S, "warmup_s": _PATIENCE_S},
                "features": {**observations, "action": action},
            }
        )

    def reset(self) -> str:
        self._data["observation/state"][:] = 0
        return "stay still"

    def step(self, action: Array) -> None:
        self._data["observation/state"] += 1

    def get_observation(self) -> Observation:
        return Observation(self._data, np.zeros(1, dtype=np.bool_))
