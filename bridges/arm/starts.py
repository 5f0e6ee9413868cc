"""``Starter``: draws an episode's initial state, a function of the task, the difficulty and the seed alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.arm.goals import Goal, Ranges
from hudsim.bridges.arm.world import HALF, HOME, JOINTS, MAX_OPENING, World
from hudsim.errors import SimFailed, UsageError

__all__ = ["InitialState", "Starter"]

_TRIES = 100
_SETTLE = 100  # physics steps: 0.2 s


@dataclass(frozen=True)
class InitialState:
    """A world at rest: qpos [nq], controls [nu], target [3]."""

    qpos: NDArray[np.float64]
    ctrl: NDArray[np.float64]
    target: NDArray[np.float64]


class Starter:
    """Draws starts and lets them settle in a simulation of its own, so that no slot has a hand in them."""

    def __init__(self, world: World, goal: Goal) -> None:
        self._world, self._goal = world, goal
        self._data = mujoco.MjData(world.model)

    def draw(self, seed: int | None, ranges: Ranges) -> InitialState:
        """The start of ``seed`` (None: any). What penetrates, tips over or does not come to rest is drawn again.

        Raises :class:`~hudsim.errors.UsageError` for a negative seed.
        """
        if seed is not None and seed < 0:
            raise UsageError(f"seed {seed}; seeds are 0 or more")
        rng = np.random.default_rng(seed)
        for _ in range(_TRIES):
            state = self._place(rng, ranges)
            if state is not None:
                return state
        raise SimFailed(f"no start without contact trouble in {_TRIES} draws (seed {seed}, task {self._goal.name})")

    def _place(self, rng: np.random.Generator, ranges: Ranges) -> InitialState | None:
        world, data = self._world, self._data
        start = self._goal.start(rng, ranges)
        joints = HOME + rng.uniform(-1.0, 1.0, JOINTS) * ranges.joints
        ctrl = np.append(joints, MAX_OPENING)
        mujoco.mj_resetData(world.model, data)
        data.qpos[world.joints], data.qpos[world.fingers], data.ctrl[:] = joints, MAX_OPENING / 2, ctrl
        if world.object is not None:
            half = start.yaw / 2
            data.qpos[world.object] = [*start.object, math.cos(half), 0.0, 0.0, math.sin(half)]
        mujoco.mj_step(world.model, data, nstep=_SETTLE)
        mujoco.mj_forward(world.model, data)
        if not self._settled(start.object):
            return None
        return InitialState(data.qpos.copy(), ctrl, start.target)

    def _settled(self, placed: NDArray[np.float64]) -> bool:
        data = self._data
        deepest = min((float(data.contact.dist[i]) for i in range(data.ncon)), default=0.0)
        at_rest = bool(np.all(np.abs(data.qvel) < 0.01))
        if self._world.object is None:
            return at_rest and data.ncon == 0
        position = data.qpos[self._world.object][:3]
        return at_rest and deepest > -0.001 and math.dist(position, placed) < 0.005 and abs(position[2] - HALF) < 0.001
