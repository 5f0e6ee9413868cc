"""The arm's contract: what is observed and what is commanded."""

from __future__ import annotations

from typing import Any

from hudsim.bridges.arm.world import CAMERAS, NAMES, VELOCITY_LIMITS, World

__all__ = ["ACTIONS", "DELTA_NAMES", "contract_document", "delta_limits"]

ACTIONS = ["joint_pos", "ee_delta"]
DELTA_NAMES = ["dx", "dy", "dz", "drx", "dry", "drz", "gripper"]

_TIP_SPEED = (1.0, 2.5)  # m/s, rad/s; the arm's own limits are 1.7 and 2.5 (Franka Control Interface documentation)
_UNITS = [*["rad"] * 7, "m"]
_SPEED_UNITS = [*["rad/s"] * 7, "m/s"]


def delta_limits(control_rate: float) -> tuple[float, float]:
    """The furthest that the tip may be sent in one tick, per axis: metres, radians."""
    return _TIP_SPEED[0] / control_rate, _TIP_SPEED[1] / control_rate


def contract_document(
    world: World, *, action: str, control_rate: float, size: tuple[int, int] | None, privileged: bool
) -> dict[str, Any]:
    """The contract as JSON. ``size`` is the cameras' (width, height), None for none."""
    features: dict[str, Any] = {}
    if size is not None:
        for camera in CAMERAS:
            features[f"observation/{camera}"] = _feature("rgb", [size[1], size[0], 3], dtype="uint8")
    features["observation/state"] = _feature("joint_pos", [8], names=NAMES, unit=_UNITS)
    features["observation/velocity"] = _feature("joint_vel", [8], names=NAMES, unit=_SPEED_UNITS)
    if privileged:
        features |= _privileged(world)
    features["action"] = _joint_action(world) if action == "joint_pos" else _delta_action(world, control_rate)
    return {
        "schema": "hudsim/1",
        "robot_type": "arm7",
        "control_rate": control_rate,
        "success": {"rule": "any"},
        "features": features,
    }


def _feature(kind: str, shape: list[int], *, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"role": "observation", "type": kind, "dtype": dtype, "shape": shape, **more}


def _privileged(world: World) -> dict[str, Any]:
    xyz: dict[str, Any] = {"names": ["x", "y", "z"], "unit": ["m"] * 3, "frame": "base", "privileged": True}
    features = {
        "observation/command": _feature("joint_pos", [8], names=NAMES, unit=_UNITS, privileged=True),
        "observation/command_velocity": _feature("joint_vel", [8], names=NAMES, unit=_SPEED_UNITS, privileged=True),
    }
    if world.object is not None:
        features["observation/object_pos"] = _feature("position", [3], **xyz)
        features["observation/object_quat"] = _feature(
            "quaternion", [4], names=["w", "x", "y", "z"], frame="base", privileged=True
        )
    if world.target:
        features["observation/target_pos"] = _feature("position", [3], **xyz)
    return features


def _joint_action(world: World) -> dict[str, Any]:
    low, high = world.limits
    return {
        "role": "action",
        "type": "joint_pos",
        "dtype": "float32",
        "shape": [8],
        "names": NAMES,
        "unit": _UNITS,
        "limits": {"min": low.tolist(), "max": high.tolist()},
        "out_of_range": "clip",
        "hold": ["repeat"] * 8,
        "description": f"targets; they are approached at {VELOCITY_LIMITS.tolist()} a second at most",
    }


def _delta_action(world: World, control_rate: float) -> dict[str, Any]:
    low, high = world.limits
    metres, radians = delta_limits(control_rate)
    reach = [*[metres] * 3, *[radians] * 3]
    return {
        "role": "action",
        "type": "ee_delta",
        "dtype": "float32",
        "shape": [7],
        "names": DELTA_NAMES,
        "unit": [*["m"] * 3, *["rad"] * 3, "m"],
        "frame": "base",
        "limits": {"min": [*(-x for x in reach), float(low[7])], "max": [*reach, float(high[7])]},
        "out_of_range": "clip",
        "hold": [*["zero"] * 6, "repeat"],
        "description": "what to add to the tip's commanded pose this tick, and the gripper's opening",
    }
