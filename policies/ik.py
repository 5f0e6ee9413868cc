"""``ArmKinematics``: where a serial arm's tip is, and which joints put it elsewhere."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ["ArmKinematics", "rotation_vector", "turned"]

Floats = NDArray[np.float64]

_DAMPING = 0.03
_ITERATIONS = 2
_REST = 0.02  # share of the way to the rest posture that the spare joint goes in one solve


class ArmKinematics:
    """Forward and inverse kinematics of the first ``len(home)`` joints of an MJCF arm.

    Damped least squares with the spare freedom drawn towards ``home``: dq = J* e + (I - J* J) k (home - q), where
    J* = Jᵀ (J Jᵀ + λ² I)⁻¹ (Nakamura and Hanafusa, ASME J. Dyn. Sys. 108, 1986).

    mjcf
        The arm alone, as text.
    tip
        The site to move.
    home
        The rest posture [rad].
    """

    def __init__(self, mjcf: str, tip: str, home: Floats) -> None:
        self._model = mujoco.MjModel.from_xml_string(mjcf)
        self._data = mujoco.MjData(self._model)
        self._tip = int(self._model.site(tip).id)
        self._home = home
        self._n = n = len(home)
        self._low, self._high = self._model.jnt_range[:n, 0], self._model.jnt_range[:n, 1]
        self._full = np.zeros((6, self._model.nv))

    def pose(self, joints: Floats) -> tuple[Floats, Floats]:
        """The tip's position [3] m and rotation matrix [3, 3] in the base's frame."""
        self._data.qpos[: self._n] = joints
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        return self._data.site_xpos[self._tip].copy(), self._data.site_xmat[self._tip].reshape(3, 3).copy()

    def twist(self, joints: Floats, rates: Floats) -> Floats:
        """The tip's velocity [6] (m/s, then rad/s, in the base's frame) at ``joints`` moving at ``rates`` [rad/s]."""
        self.pose(joints)
        velocity: Floats = self._jacobian() @ rates
        return velocity

    def solve(self, joints: Floats, position: Floats, rotation: Floats) -> Floats:
        """Joints [rad] within their limits that bring the tip to the pose, from ``joints`` near it.

        What cannot be reached is approached: check with :meth:`pose` where it matters.
        """
        goal = joints.copy()
        for i in range(_ITERATIONS):
            now, facing = self.pose(goal)
            error = np.concatenate([position - now, rotation_vector(facing, rotation)])
            jacobian = self._jacobian()
            inverse = jacobian.T @ np.linalg.inv(jacobian @ jacobian.T + _DAMPING**2 * np.eye(6))
            step = inverse @ error
            if i == 0:
                rest = _REST * (self._home - goal)
                step += rest - inverse @ (jacobian @ rest)
            goal = np.clip(goal + step, self._low, self._high)
        return goal

    def _jacobian(self) -> Floats:
        mujoco.mj_jacSite(self._model, self._data, self._full[:3], self._full[3:], self._tip)
        return self._full[:, : self._n].copy()


def rotation_vector(now: Floats, wanted: Floats) -> Floats:
    """The rotation vector [3] rad, in the base's frame, that turns matrix ``now`` into ``wanted``."""
    quaternion, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quaternion, (wanted @ now.T).ravel())
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    return vector


def turned(rotation: Floats, vector: Floats) -> Floats:
    """``rotation`` [3, 3] turned by the rotation vector [3] rad, both in the base's frame."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return rotation
    quaternion, matrix = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(quaternion, vector / angle, angle)
    mujoco.mju_quat2Mat(matrix, quaternion)
    result: Floats = matrix.reshape(3, 3) @ rotation
    return result
