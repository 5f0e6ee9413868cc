"""``DeltaControl``: end-effector deltas to joint targets."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.arm.world import JOINTS, arm_mjcf

__all__ = ["DeltaControl"]

_DAMPING = 0.02
_ITERATIONS = 4


class DeltaControl:
    """Moves the tip's *commanded* pose by a delta, so that what the arm lags behind does not add up to drift.

    Damped least squares: dq = Jᵀ (J Jᵀ + λ² I)⁻¹ e, a few times a tick (Wampler, IEEE Trans. SMC 16, 1986).
    """

    def __init__(self) -> None:
        self._model = mujoco.MjModel.from_xml_string(arm_mjcf())
        self._data = mujoco.MjData(self._model)
        self._tip = int(self._model.site("tip").id)
        self._jacobian = np.zeros((6, self._model.nv))

    def target(self, joints: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Joint targets [7] rad for the tip pose of ``joints`` [7] moved by ``delta`` [6].

        delta: dx, dy, dz [m] and a rotation vector [rad], both along the base's axes. Limits are the caller's.
        """
        goal = joints.copy()
        position, rotation = self._pose(goal)
        turn, quaternion = np.zeros(4), np.zeros(4)
        angle = float(np.linalg.norm(delta[3:]))
        mujoco.mju_axisAngle2Quat(turn, delta[3:] / angle if angle else np.array([0.0, 0.0, 1.0]), angle)
        mujoco.mju_mulQuat(quaternion, turn, rotation)
        wanted = position + delta[:3]
        for _ in range(_ITERATIONS):
            error = np.concatenate([wanted - position, _rotation_between(rotation, quaternion)])
            if np.abs(error).max() < 1e-9:
                break
            goal += self._descend(error)
            position, rotation = self._pose(goal)
        return goal

    def _pose(self, joints: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The tip's position [3] and quaternion [4] (w first)."""
        self._data.qpos[:JOINTS] = joints
        mujoco.mj_kinematics(self._model, self._data)
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, self._data.site_xmat[self._tip])
        return self._data.site_xpos[self._tip].copy(), quaternion

    def _descend(self, error: NDArray[np.float64]) -> NDArray[np.float64]:
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_jacSite(self._model, self._data, self._jacobian[:3], self._jacobian[3:], self._tip)
        jacobian = self._jacobian[:, :JOINTS]
        damped = jacobian @ jacobian.T + _DAMPING**2 * np.eye(6)
        step: NDArray[np.float64] = jacobian.T @ np.linalg.solve(damped, error)
        return step


def _rotation_between(now: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rotation vector [3] rad, along the base's axes, that turns ``now`` into ``wanted`` (quaternions [4])."""
    inverse, turn, vector = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, now)
    mujoco.mju_mulQuat(turn, wanted, inverse)
    mujoco.mju_quat2Vel(vector, turn, 1.0)
    return vector
