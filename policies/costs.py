"""What a planner minimises: cost functions by name. A world's capability names its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudsim.errors import UnknownName

__all__ = ["COSTS", "Cost", "cost_named", "inverted_pendulum", "qpos", "qvel", "register_cost"]

Floats = NDArray[np.float64]
Cost = Callable[[Any, Floats, Floats], Floats]
"""``(model, states [K, T, nstate], actions [K, T, A]) -> cost [K]`` of K sampled futures of T control ticks.

``states`` are MuJoCo's full physics states *after* each action; :func:`qpos` and :func:`qvel` take them apart.
"""

COSTS: dict[str, Cost] = {}


def register_cost(name: str, cost: Cost) -> None:
    """Make ``cost`` known under ``name`` to every planner of this process."""
    COSTS[name] = cost


def cost_named(name: str) -> Cost:
    """The registered cost; raises :class:`~hudsim.errors.UnknownName` with those there are."""
    if name not in COSTS:
        raise UnknownName("cost", name, COSTS)
    return COSTS[name]


def qpos(model: Any, states: Floats) -> Floats:
    """The generalised positions [..., nq] in full physics states [..., nstate] (time comes first)."""
    return states[..., 1 : 1 + model.nq]


def qvel(model: Any, states: Floats) -> Floats:
    """The generalised velocities [..., nv] in full physics states [..., nstate]."""
    return states[..., 1 + model.nq : 1 + model.nq + model.nv]


def inverted_pendulum(model: Any, states: Floats, actions: Floats) -> Floats:
    """Upright (joint ``pole``, rad), in the middle of the rail (joint ``cart``, m), at rest and with little effort."""
    positions, velocities = qpos(model, states), qvel(model, states)
    cart, pole = model.joint("cart"), model.joint("pole")
    x, angle = positions[..., cart.qposadr[0]], positions[..., pole.qposadr[0]]
    dx, spin = velocities[..., cart.dofadr[0]], velocities[..., pole.dofadr[0]]
    effort = np.square(actions).sum(axis=-1)
    running = 20 * np.square(angle) + 4 * np.square(x) + 0.5 * np.square(dx) + 0.1 * np.square(spin) + 0.002 * effort
    end = 50 * np.square(angle[:, -1]) + 5 * np.square(spin[:, -1]) + 4 * np.square(x[:, -1]) + 4 * np.square(dx[:, -1])
    return np.asarray(running.mean(axis=-1) + end)


register_cost("inverted_pendulum", inverted_pendulum)
