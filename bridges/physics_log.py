"""MuJoCo's warnings as log records, and the divergences that it would hide."""

from __future__ import annotations

import logging
import math
from typing import Any

import mujoco

from hudsim.errors import SimDiverged

__all__ = ["check_divergence", "keep_divergence", "log_warnings"]

_log = logging.getLogger("hudsim.mujoco")
_BAD = {
    "position": mujoco.mjtWarning.mjWARN_BADQPOS,
    "velocity": mujoco.mjtWarning.mjWARN_BADQVEL,
    "acceleration": mujoco.mjtWarning.mjWARN_BADQACC,
}


def log_warnings() -> None:
    """Send MuJoCo's warnings to the logger ``hudsim.mujoco``; else they go to MUJOCO_LOG.TXT in the working folder."""
    mujoco.set_mju_user_warning(_log.info)  # a divergence, the one that matters, is raised besides


def keep_divergence(model: Any) -> None:
    """Have a simulation of ``model`` that diverges stay diverged: by default MuJoCo puts it back to time 0."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET


def check_divergence(data: Any, tick: int) -> None:
    """Raise :class:`~hudsim.errors.SimDiverged` if ``data`` has left the finite numbers since its reset."""
    warnings = data.warning
    bad = [name for name, which in _BAD.items() if warnings[which].number]
    if bad or not math.isfinite(data.qpos.sum() + data.qvel.sum()):
        what = f"{' and '.join(bad)} not finite or huge" if bad else "not finite"
        raise SimDiverged(f"the physics diverged at tick {tick} ({data.time:.3f} s): {what}", tick=tick)
