"""``Physics``: N simulations of one model, on ``mujoco.batch`` where MuJoCo has it, else one by one.

Both give the same numbers bit for bit.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.physics_log import log_warnings

__all__ = ["BatchPhysics", "LoopPhysics", "Physics", "make_physics"]

Floats = NDArray[np.float64]

_POSITIONS = 1  # mjtStage.mjSTAGE_POS, which MuJoCo 3 does not name everywhere


class Physics(ABC):
    """N simulations, each stepped and reset by itself.

    qpos, qvel, ctrl
        [N, nq], [N, nv], [N, nu]: the states and controls; write controls, read the others.
    site_xpos, touch
        Sites [N, nsite, 3] in m, at that state; touch sensors [N, nsensordata] in newton, of the last physics step.
    """

    qpos: Floats
    qvel: Floats
    ctrl: Floats
    site_xpos: Floats
    touch: Floats

    @abstractmethod
    def reset(self, slot: int, qpos: Floats, ctrl: Floats, target: Floats | None) -> None:
        """Put a simulation at rest at ``qpos``, time 0, its marker (if it has one) at ``target``."""

    @abstractmethod
    def step(self, slots: Sequence[int], substeps: int) -> None:
        """Advance some simulations; afterwards all arrays are current."""

    @abstractmethod
    def data(self, slot: int) -> mujoco.MjData:
        """A simulation's poses, to render; valid until the next call."""


def make_physics(model: mujoco.MjModel, num_envs: int) -> Physics:
    """The fastest there is for this MuJoCo. Sends MuJoCo's warnings to the log, not to the working folder."""
    log_warnings()
    if importlib.util.find_spec("mujoco.batch") is not None:
        return BatchPhysics(model, num_envs)
    return LoopPhysics(model, num_envs)


class BatchPhysics(Physics):
    """On ``mujoco.batch``: the simulations share a pool of threads."""

    def __init__(self, model: mujoco.MjModel, num_envs: int) -> None:
        threads = min(num_envs, os.cpu_count() or 1)
        self._batch: Any = importlib.import_module("mujoco.batch").Batch(model, nsim=num_envs, nthread=threads)
        self._model = model
        self._data = mujoco.MjData(model)
        bind = self._batch.bind
        self.qpos, self.qvel, self.ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self.site_xpos, self.touch = bind("site_xpos"), bind("sensordata")
        self._target = bind("mocap_pos") if model.nmocap else None
        self._batch.forward()

    def reset(self, slot: int, qpos: Floats, ctrl: Floats, target: Floats | None) -> None:
        self._batch.reset([slot], stage=0)
        self.qpos[slot], self.ctrl[slot] = qpos, ctrl
        if self._target is not None and target is not None:
            self._target[slot, 0] = target
        self._batch.forward([slot])

    def step(self, slots: Sequence[int], substeps: int) -> None:
        self._batch.step(list(slots), nstep=substeps, stage=_POSITIONS)

    def data(self, slot: int) -> mujoco.MjData:
        self._batch.get_data(slot, self._data)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return self._data


class LoopPhysics(Physics):
    """One ``MjData`` a simulation, stepped in turn."""

    def __init__(self, model: mujoco.MjModel, num_envs: int) -> None:
        self._model = model
        self._datas = [mujoco.MjData(model) for _ in range(num_envs)]
        self.qpos, self.qvel = np.zeros((num_envs, model.nq)), np.zeros((num_envs, model.nv))
        self.ctrl = np.zeros((num_envs, model.nu))
        self.site_xpos = np.zeros((num_envs, model.nsite, 3))
        self.touch = np.zeros((num_envs, model.nsensordata))
        for slot, data in enumerate(self._datas):
            mujoco.mj_forward(model, data)
            self._read(slot)

    def reset(self, slot: int, qpos: Floats, ctrl: Floats, target: Floats | None) -> None:
        data = self._datas[slot]
        mujoco.mj_resetData(self._model, data)
        data.qpos[:], data.ctrl[:] = qpos, ctrl
        self.ctrl[slot] = ctrl
        if self._model.nmocap and target is not None:
            data.mocap_pos[0] = target
        mujoco.mj_forward(self._model, data)
        self._read(slot)

    def step(self, slots: Sequence[int], substeps: int) -> None:
        for slot in slots:
            data = self._datas[slot]
            data.ctrl[:] = self.ctrl[slot]
            mujoco.mj_step(self._model, data, nstep=substeps)
            mujoco.mj_fwdPosition(self._model, data)
            self._read(slot)

    def data(self, slot: int) -> mujoco.MjData:
        return self._datas[slot]

    def _read(self, slot: int) -> None:
        data = self._datas[slot]
        self.qpos[slot], self.qvel[slot] = data.qpos, data.qvel
        self.site_xpos[slot], self.touch[slot] = data.site_xpos, data.sensordata
