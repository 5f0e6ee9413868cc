"""``Mpc``: predictive sampling, for any MuJoCo world whose capability carries its model and names a cost."""

from __future__ import annotations

import logging
import math
import os
import threading
import zlib
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

from hudsim.contract import Contract
from hudsim.errors import ContractError, UsageError
from hudsim.policies.costs import Cost, cost_named
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["Mpc", "knots_to_plan"]

Floats = NDArray[np.float64]
_log = logging.getLogger("hudsim.mujoco")
_STATE = "observation/physics"


def knots_to_plan(knots: Floats, ticks: int) -> Floats:
    """Plans [K, ticks, A] that pass linearly through ``knots`` [K, P, A], the first at tick 0, the last at the end."""
    count = knots.shape[1]
    at = np.linspace(0.0, count - 1.0, ticks)
    left = np.minimum(at.astype(int), count - 1)
    right = np.minimum(left + 1, count - 1)
    weight = (at - left)[:, np.newaxis]
    return np.asarray(knots[:, left] * (1 - weight) + knots[:, right] * weight)


class Mpc(Model):
    """Plans by predictive sampling (Howell et al. 2022, arXiv:2212.00541, algorithm 1) over ``mujoco.rollout``.

    The plan in hand is the mean; ``samples`` - 1 others are drawn around it, all are simulated, the cheapest is
    kept, ``rounds`` times. The plan in hand is what the agent has not executed yet (``unexecuted_chunk`` of the
    batch, [1, T, A]), so nothing is remembered here. The first ``delay`` ticks (of the batch, at most what this
    inference is expected to take) are as good as executed: the chunk begins with them unchanged and the search
    starts in the state that they lead to. So a plan may take several ticks and still fits where it arrives: on the
    pendulum it may arrive two ticks earlier or later than expected, but not five.

    The noise is a function of ``seed`` and the state alone: the same batch gives the same chunk.

    samples
        Futures simulated a round. 64 are enough for the pendulum; the default makes a plan take 45 ms there, more
        than two control ticks, on a machine of two processors.
    horizon
        Ticks looked ahead, after the delay; the chunk has ``delay + horizon`` actions.
    knots
        Points of the piecewise linear noise over the horizon.
    noise
        Standard deviation at the knots in units of half the action's range (of 1 where it is unbounded).
    threads
        For the simulation. None: as many as there are processors less one, which is the world's.
    cost
        A :data:`~hudsim.policies.costs.Cost`, or the name of a registered one. None: what the world names.
    """

    needs_privileged = True

    def __init__(
        self,
        *,
        samples: int = 256,
        horizon: int = 25,
        knots: int = 5,
        noise: float = 0.05,
        rounds: int = 2,
        threads: int | None = None,
        seed: int = 0,
        cost: Cost | str | None = None,
    ) -> None:
        if samples < 2 or horizon < 2 or not 2 <= knots <= horizon or rounds < 1 or noise <= 0:
            raise UsageError(
                f"samples {samples}, horizon {horizon}, knots {knots}, rounds {rounds}, noise {noise}; "
                "expected at least 2, 2, 2 (at most the horizon), 1, and more than 0"
            )
        self._samples, self._horizon, self._knots = samples, horizon, knots
        self._noise, self._rounds, self._seed = noise, rounds, seed
        self._cost_wanted = cost
        self._threads = threads or max(1, (os.cpu_count() or 1) - 1)
        self._lock = threading.Lock()  # one pool of rollout threads, however many agents ask at once
        self._model: Any = None

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Compile the world's model. Raises :class:`~hudsim.errors.UsageError` for what the world does not offer."""
        if "model" not in params:
            raise UsageError("mpc needs the world's MJCF in its capability's params (`model`), and there is none")
        if _STATE not in contract.observations:
            raise UsageError(
                f"mpc needs {_STATE}, the full physics state (privileged=True); "
                f"there are: {', '.join(contract.observations)}"
            )
        wanted = self._cost_wanted if self._cost_wanted is not None else params.get("cost")
        if wanted is None:
            raise UsageError("mpc needs a cost: the world names none; give one with cost=")
        self._cost = cost_named(wanted) if isinstance(wanted, str) else wanted
        mujoco.set_mju_user_warning(_log.info)  # else a future that diverges writes MUJOCO_LOG.TXT here
        model = mujoco.MjModel.from_xml_string(params["model"])
        action, rate = contract.action, contract.control_rate
        if action.shape != (model.nu,) or rate is None:
            raise ContractError(
                contract.action_name,
                got=f"shape {action.shape} at {rate} Hz",
                expected=f"the model's {model.nu} actuators and a control rate",
            )
        # A future that diverges must not look like one at rest.
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self._substeps = max(1, round(1.0 / (rate * model.opt.timestep)))
        self._low, self._high = _limits(model)
        self._holds = np.array([how == "repeat" for how in action.hold or ["zero"] * model.nu])
        self._data = [mujoco.MjData(model) for _ in range(self._threads)]
        self._pool = rollout.Rollout(nthread=self._threads)
        self._model = model

    def infer(self, batch: Mapping[str, Any]) -> Array:
        """float32 [N, delay + horizon, A]; row 0 is for the tick right after the observation."""
        if self._model is None:
            raise UsageError("mpc is not bound to a world yet")
        states = np.asarray(batch[_STATE], np.float64)
        delays = np.asarray(batch.get("delay", 0)).reshape(-1)
        unexecuted = batch.get("unexecuted_chunk")
        plans = []
        with self._lock:
            for i, state in enumerate(states):
                ahead = np.zeros((0, self._model.nu)) if unexecuted is None else np.asarray(unexecuted[i], np.float64)
                plans.append(self._plan(state, ahead, int(delays.max())))
        return np.stack(plans).astype(np.float32)

    def _plan(self, state: Floats, ahead: Floats, delay: int) -> Floats:
        """The chunk [delay + horizon, A] from ``state`` [nstate], with ``ahead`` [T, A] still to be executed."""
        committed = _take(ahead, 0, delay, self._holds)
        if delay:
            state = self._simulate(state, committed[np.newaxis])[0, -1]
        best = _take(ahead, delay, self._horizon, self._holds)
        rng = np.random.default_rng([self._seed, zlib.crc32(state.tobytes())])
        span = np.where(np.isfinite(self._high - self._low), (self._high - self._low) / 2, 1.0)
        for round_ in range(self._rounds):
            scale = self._noise * span / 2**round_
            knots = rng.standard_normal((self._samples, self._knots, self._model.nu)) * scale
            knots[0] = 0
            plans = np.clip(best + knots_to_plan(knots, self._horizon), self._low, self._high)
            best = plans[np.argmin(self._price(state, plans))]
        return np.concatenate([committed, best])

    def _price(self, state: Floats, plans: Floats) -> Floats:
        futures = self._simulate(state, plans)
        with np.errstate(all="ignore"):
            cost = np.asarray(self._cost(self._model, futures, plans), np.float64)
        # A diverged future is filled up with its last good state, so its clock (the first number) stands still.
        short = futures[:, -1, 0] < state[0] + (self._horizon * self._substeps - 0.5) * self._model.opt.timestep
        return np.where(short | ~np.isfinite(cost), math.inf, cost)

    def _simulate(self, state: Floats, plans: Floats) -> Floats:
        """The states [K, T, nstate] after each tick of ``plans`` [K, T, A]."""
        controls = np.repeat(plans, self._substeps, axis=1)
        states, _ = self._pool.rollout(self._model, self._data, state[np.newaxis], np.ascontiguousarray(controls))
        return np.asarray(states[:, self._substeps - 1 :: self._substeps])


def _limits(model: Any) -> tuple[Floats, Floats]:
    limited = model.actuator_ctrllimited.astype(bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -math.inf)
    return low, np.where(limited, model.actuator_ctrlrange[:, 1], math.inf)


def _take(ahead: Floats, start: int, count: int, holds: NDArray[np.bool_]) -> Floats:
    """Actions ``start`` to ``start + count`` of ``ahead`` [T, A], continued as a starved world would."""
    taken = ahead[start : start + count]
    last = ahead[-1] if len(ahead) else np.zeros(len(holds))
    rest = np.tile(np.where(holds, last, 0.0), (count - len(taken), 1))
    return np.concatenate([taken, rest])
