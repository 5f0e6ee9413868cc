"""Documents and contracts that the tests of this folder share."""

from __future__ import annotations

import copy
from typing import Any

from hudsim.contract import Contract

__all__ = ["ARM", "JOINTS", "arm", "contract"]

JOINTS = [f"joint{i}" for i in range(1, 8)] + ["gripper"]

ARM: dict[str, Any] = {
    "schema": "hudsim/1",
    "robot_type": "arm7",
    "control_rate": 50.0,
    "timing": {"mode": "lockstep", "on_miss": "hold", "policy_deadline_s": 5.0, "warmup_s": 120.0},
    "success": {"rule": "any"},
    "features": {
        "observation/scene": {"role": "observation", "type": "rgb", "dtype": "uint8", "shape": [24, 32, 3]},
        "observation/depth": {
            "role": "observation",
            "type": "depth",
            "dtype": "float32",
            "shape": [24, 32],
            "finite": False,
        },
        "observation/state": {
            "role": "observation",
            "dtype": "float32",
            "shape": [8],
            "names": JOINTS,
            "unit": ["rad"],
        },
        "observation/cube": {"role": "observation", "dtype": "float64", "shape": [3], "privileged": True},
        "action": {
            "role": "action",
            "type": "joint_pos",
            "dtype": "float32",
            "shape": [8],
            "names": JOINTS,
            "limits": {"min": [-2.8973, None, -1, -1, -1, -1, -1, 0], "max": [2.8973, None, 1, 1, 1, 1, 1, 1]},
            "out_of_range": "clip",
            "hold": ["repeat"],
        },
    },
}


def arm(**changes: Any) -> dict[str, Any]:
    """The arm's document, with keys of its action changed (None: taken out)."""
    doc = copy.deepcopy(ARM)
    action = doc["features"]["action"]
    for key, value in changes.items():
        action[key] = value
    doc["features"]["action"] = {key: value for key, value in action.items() if value is not None}
    return doc


def contract(action: dict[str, Any], **observations: dict[str, Any]) -> Contract:
    """A contract of one action and some observations, roles filled in."""
    features: dict[str, Any] = {name: {"role": "observation", **doc} for name, doc in observations.items()}
    features["action"] = {"role": "action", **action}
    return Contract.load({"schema": "hudsim/1", "control_rate": 20, "features": features})
