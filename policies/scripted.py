"""``Scripted``: an expert for the arm's three tasks, from the privileged state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.policies.ik import ArmKinematics, rotation_vector, turned
from hudsim.policies.waypoints import RULES, View, Waypoint, push_distance
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["Scripted"]

Floats = NDArray[np.float64]

_ACCELERATION = 1.6  # m/s²
_TURNING = (1.6, 6.0)  # rad/s, rad/s²
_SHARE = 0.95  # of the arm's velocity limits

_NEEDS = {
    "reach": ["observation/command", "observation/command_velocity", "observation/target_pos"],
    "lift": [
        "observation/command",
        "observation/command_velocity",
        "observation/object_pos",
        "observation/object_quat",
    ],
}
_NEEDS["push"] = [*_NEEDS["lift"], "observation/target_pos"]


class Scripted(Model):
    """Goes from waypoint to waypoint, the joints by damped least squares, and plans a chunk ahead.

    It plans from the commands that the arm is following, at their velocity, so that chunk follows chunk without a
    step, also when one arrives some ticks late.

    chunk
        T, the actions in a chunk [control ticks].
    """

    needs_privileged: ClassVar[bool] = True

    def __init__(self, chunk: int = 16) -> None:
        if chunk < 1:
            raise UsageError(f"chunk {chunk}; at least 1")
        self._chunk = chunk

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Raises :class:`~hudsim.errors.UsageError` for a world that is not the arm, or hides what is needed."""
        arm, task = params.get("arm"), params.get("task")
        if not isinstance(arm, Mapping) or task not in RULES:
            raise UsageError(
                f"policy scripted drives arm-reach, arm-lift and arm-push only; this world is a "
                f"{contract.robot_type or 'robot without a type'} and its params have no 'arm' with a known 'task'"
            )
        self._needs = _NEEDS[task]
        missing = [name for name in self._needs if name not in contract.observations]
        if missing:
            raise UsageError(
                f"policy scripted needs {', '.join(missing)}; the world shows {', '.join(contract.observations)}. "
                f"Make it with privileged=True"
            )
        if contract.action.type != "joint_pos":
            raise UsageError(f"policy scripted commands joint_pos; the world takes {contract.action.type}")
        self._rule = RULES[task]
        self._half = float(arm["object_half_size"])
        self._dt = 1.0 / float(contract.control_rate or 50.0)
        self._limits = _SHARE * np.asarray(arm["velocity_limits"], np.float64) * self._dt
        self._kinematics = ArmKinematics(arm["mjcf"], arm["tip"], np.asarray(arm["home"], np.float64))

    def infer(self, batch: Any) -> Array:
        """Chunks float32 [N, T, 8]."""
        rows = len(batch["observation/command"])
        return np.stack([self._plan({name: batch[name][i] for name in self._needs}) for i in range(rows)])

    def _plan(self, row: Mapping[str, Array]) -> Array:
        """One world's chunk [T, 8]: the rule's waypoints followed through an undisturbed future."""
        command = np.asarray(row["observation/command"], np.float64)
        joints, opening = command[:7], float(command[7])
        rates = np.asarray(row["observation/command_velocity"], np.float64)[:7]
        twist = self._kinematics.twist(joints, rates)
        cube = np.array(row.get("observation/object_pos", np.zeros(3)), np.float64)
        target = np.array(row.get("observation/target_pos", np.zeros(3)), np.float64)
        object_yaw = _yaw(row["observation/object_quat"]) if "observation/object_quat" in row else 0.0
        chunk = np.empty((self._chunk, 8), np.float32)
        for tick in range(self._chunk):
            tip, facing = self._kinematics.pose(joints)
            yaw = math.atan2(facing[1, 0], facing[0, 0])
            view = View(tip, yaw, opening, cube, object_yaw, target, self._half)
            waypoint = self._rule(view)
            twist = self._accelerate(twist, tip, facing, waypoint)
            moved, turn = twist[:3] * self._dt, twist[3:] * self._dt
            solved = self._kinematics.solve(joints, tip + moved, turned(facing, turn))
            joints = joints + np.clip(solved - joints, -self._limits[:7], self._limits[:7])
            opening += float(np.clip(waypoint.opening - opening, -self._limits[7], self._limits[7]))
            cube = _predict(view, waypoint, moved)
            chunk[tick, :7], chunk[tick, 7] = joints, opening
        return chunk

    def _accelerate(self, twist: Floats, tip: Floats, facing: Floats, waypoint: Waypoint) -> Floats:
        """The next tick's velocity [6]: towards the waypoint, slow enough to stop there."""
        way = waypoint.position - tip
        turn = rotation_vector(facing, _down(waypoint.yaw))
        return np.concatenate(
            [
                _approach(twist[:3], way, waypoint.speed, _ACCELERATION, self._dt),
                _approach(twist[3:], turn, *_TURNING, self._dt),
            ]
        )


def _approach(velocity: Floats, way: Floats, speed: float, acceleration: float, dt: float) -> Floats:
    """The velocity [3] a tick later, on the way [3] to rest at its end."""
    left = float(np.linalg.norm(way))
    if left < 1e-9:
        wanted = np.zeros(3)
    else:
        # Half the acceleration for braking: the rest is kept for corrections. Near the end, a tenth of a second's way.
        wanted = way / left * min(speed, math.sqrt(acceleration * left), left / 0.1)
    change = wanted - velocity
    size = float(np.linalg.norm(change))
    most = acceleration * dt
    result: Floats = velocity + change * min(1.0, most / size) if size > 0 else wanted
    return result


def _predict(view: View, waypoint: Waypoint, moved: Floats) -> Floats:
    """Where the cube is after the tip moved: carried, or pushed as far as the fingers reach, or left alone."""
    if waypoint.carries:
        carried: Floats = view.object + moved
        return carried
    way = view.target[:2] - view.object[:2]
    left = float(np.linalg.norm(way))
    if not waypoint.pushes or left < 1e-6:
        return view.object
    along = way / left
    ahead = float((view.tip[:2] + moved[:2] - view.object[:2]) @ along) + push_distance(view, along)
    pushed: Floats = view.object + np.array([*(along * max(ahead, 0.0)), 0.0])
    return pushed


def _yaw(quaternion: Array) -> float:
    """The yaw [rad] of a quaternion [4], w first."""
    w, x, y, z = (float(v) for v in quaternion)
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _down(yaw: float) -> Floats:
    """The rotation matrix of a hand that points down, its x axis at ``yaw`` [rad]."""
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])
