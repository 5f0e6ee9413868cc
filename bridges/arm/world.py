"""``World``: the arm's MuJoCo model for one task, and where things are in its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.arm.shells import dress
from hudsim.errors import UsageError

__all__ = [
    "CAMERAS",
    "HALF",
    "HOME",
    "JOINTS",
    "MAX_OPENING",
    "NAMES",
    "TIMESTEP",
    "VELOCITY_LIMITS",
    "World",
    "arm_mjcf",
    "substeps",
]

JOINTS = 7
NAMES = [*(f"joint{i}" for i in range(1, JOINTS + 1)), "gripper"]
"""The seven joints from base to hand and the gripper, the order of states and actions."""

CAMERAS = ["scene", "wrist"]
TIMESTEP = 0.002
HALF = 0.0225
"""Half the cube's edge [m]."""

MAX_OPENING = 0.08
"""The gripper's stroke [m]: the distance between its fingers."""

HOME = np.array([0.0, -0.5, 0.0, -2.3, 0.0, 1.8, 0.785])
"""Where an episode starts, but for noise [rad]: the hand over the table, pointing down."""

VELOCITY_LIMITS = np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61, 0.1])
"""rad/s of the joints and m/s of the gripper's opening (Franka Control Interface documentation, joint limits)."""

_FOLDER = Path(__file__).parent


def arm_mjcf() -> str:
    """The arm alone as MJCF, for planners: no table, no objects; the site ``tip`` is between the fingertips."""
    return (_FOLDER / "arm.xml").read_text()


@dataclass(frozen=True)
class World:
    """One task's model.

    joints
        Addresses in qpos and in qvel of the seven joints.
    fingers
        Addresses of the two finger joints; the opening is the sum of both.
    object
        Address in qpos of the cube's pose [x y z, w x y z]; None: the task has no cube.
    target
        Whether the model has a target marker, mocap body 0.
    tip
        The site between the fingertips.
    """

    model: mujoco.MjModel
    joints: slice
    fingers: slice
    object: slice | None
    target: bool
    tip: int

    @classmethod
    def load(cls, task: str) -> World:
        """The model of ``{task}.xml`` beside this file, with the arm's looks."""
        spec = mujoco.MjSpec.from_file(str(_FOLDER / f"{task}.xml"))
        dress(spec)
        model = spec.compile()
        first = int(model.joint("joint1").qposadr[0])
        finger = int(model.joint("finger1").qposadr[0])
        has_object = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "object") >= 0
        start = int(model.joint("object").qposadr[0]) if has_object else 0
        return cls(
            model=model,
            joints=slice(first, first + JOINTS),
            fingers=slice(finger, finger + 2),
            object=slice(start, start + 7) if has_object else None,
            target=model.nmocap > 0,
            tip=int(model.site("tip").id),
        )

    @property
    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest target [8] that the joints [rad] and the gripper [m] take."""
        ranges = self.model.actuator_ctrlrange
        return ranges[:, 0].copy(), ranges[:, 1].copy()


def substeps(control_rate: float) -> int:
    """Physics steps a control tick. Raises :class:`~hudsim.errors.UsageError` unless it is a whole number."""
    if not 0 < control_rate <= 1 / TIMESTEP:
        raise UsageError(f"control_rate {control_rate:g} Hz; the arm's physics runs at {1 / TIMESTEP:g} Hz")
    steps = 1 / (control_rate * TIMESTEP)
    if abs(steps - round(steps)) > 1e-6:
        near = sorted({1 / (TIMESTEP * n) for n in (int(steps), int(steps) + 1)})
        rates = " or ".join(f"{rate:g}" for rate in near)
        raise UsageError(f"control_rate {control_rate:g} Hz is no whole number of {TIMESTEP:g} s steps; near: {rates}")
    return round(steps)
