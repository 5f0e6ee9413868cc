"""``make_engine``: the engine for a contract's timing mode."""

from __future__ import annotations

from typing import Any

from hudsim.loop import SimThread
from hudsim.robot.engine import Deliver, Engine
from hudsim.robot.lockstep import LockstepEngine, PacedEngine
from hudsim.robot.realtime import RealtimeEngine
from hudsim.robot.world import World

__all__ = ["make_engine"]

_MODES: dict[str, type[Engine[Any]]] = {"lockstep": LockstepEngine, "paced": PacedEngine, "realtime": RealtimeEngine}


def make_engine(world: World, sim: SimThread, deliver: Deliver) -> Engine[Any]:
    """The engine that keeps time as ``world.contract.timing.mode`` says.

    Raises :class:`~hudsim.errors.UsageError` if the world cannot be played so.
    """
    return _MODES[world.contract.timing.mode](world, sim, deliver)
