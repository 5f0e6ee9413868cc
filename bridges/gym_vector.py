"""Gymnasium environments in numbers: slots of their own, or a vector environment as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from hudsim.bridges.gym_env import GymWorld, observed
from hudsim.bridges.gym_make import control_rate_of
from hudsim.contract import Contract
from hudsim.contract.spaces import flatten_observation
from hudsim.errors import ContractError, UsageError
from hudsim.robot.bridge import Array, Observation, RobotBridge, VectorRobotBridge

__all__ = ["GymBatchBridge", "GymVectorBridge"]

Vector = VectorEnv[Any, Any, Any]


class GymVectorBridge(VectorRobotBridge):
    """N Gymnasium environments on one thread, each reset and stepped by itself.

    env
        What :class:`~hudsim.bridges.gym_env.GymBridge` takes by name, made ``num_envs`` times; or a
        ``SyncVectorEnv``, whose environments are driven one by one: whatever its autoreset mode, no step is lost to a
        reset and each last observation is the true one.
    options
        As GymBridge's.

    Raises :class:`~hudsim.errors.UsageError` for any other vector environment: it steps all of its worlds at once,
    so that no slot could wait for its policy. :class:`GymBatchBridge` serves those.
    """

    contract: Contract

    def __init__(
        self,
        env: str | Vector,
        *,
        num_envs: int | None = None,
        control_rate: float | None = None,
        out_of_range: Literal["reject", "clip"] = "clip",
        hold: Literal["repeat", "zero"] = "repeat",
        prompt: str | None = None,
        **options: Any,
    ) -> None:
        envs: Sequence[Any] = [env] * (num_envs or 1) if isinstance(env, str) else _one_by_one(env, num_envs)
        self._worlds: list[GymWorld] = []
        try:
            for each in envs:
                self._worlds.append(GymWorld(each, **options))
            contracts = [world.contract(control_rate, out_of_range, hold) for world in self._worlds]
        except BaseException:
            self.close()
            raise
        for slot, contract in enumerate(contracts):
            if contract.features != contracts[0].features:
                raise ContractError(
                    f"slot {slot}", got="; ".join(contracts[0].diff(contract)), expected="the same as slot 0"
                )
        self.contract = contracts[0]
        self.num_envs = len(self._worlds)
        self._prompt = self._worlds[0].name if prompt is None else prompt

    def reset(  # type: ignore[override]
        self, slots: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None = None
    ) -> list[str]:
        for slot, seed in zip(slots, seeds, strict=True):
            self._worlds[slot].reset(seed, options)
        return [self._prompt] * len(slots)

    def step(self, action: Array, active: NDArray[np.bool_]) -> None:  # type: ignore[override]
        for slot in np.flatnonzero(active).tolist():
            self._worlds[slot].step(action[slot])

    def get_observation(self) -> Observation:
        for world in self._worlds:
            if not world.data:
                world.reset(0, None)  # a slot that no episode has claimed yet has to show something
        return observed(self._worlds)

    def close(self) -> None:
        for world in self._worlds:
            world.close()


def _one_by_one(env: Vector, num_envs: int | None) -> Sequence[Any]:
    if type(env) is not SyncVectorEnv:
        raise UsageError(
            f"{type(env).__name__} steps all of its worlds at once, so a slot cannot wait for its policy: give a "
            "SyncVectorEnv or the environment's name, or serve it as a whole with GymBatchBridge"
        )
    if num_envs not in (None, env.num_envs):
        raise UsageError(f"num_envs {num_envs}, but the vector environment has {env.num_envs}")
    return env.envs


class GymBatchBridge(RobotBridge):
    """A Gymnasium vector environment of any kind and autoreset mode, reset and stepped as a whole.

    A world that is over stays as it was at its end, with its true last observation, until all are reset: what the
    environment does with it meanwhile (a reset of its own, steps after the end) is not seen.

    env
        A ``VectorEnv``, a factory of one, or the id of one for ``gymnasium.make_vec``.
    num_envs, make_args
        For ``make_vec`` (``vectorization_mode`` among them) or the factory.
    control_rate, out_of_range, hold
        As GymBridge's.

    Raises :class:`~hudsim.errors.UsageError` for one that does not tell its autoreset mode, and for an
    ``AsyncVectorEnv`` that resets in the same step: an environment that reuses its buffer has then written over its
    last observation before the worker sends it.
    """

    contract: Contract

    def __init__(
        self,
        env: str | Vector | Callable[..., Vector],
        *,
        num_envs: int | None = None,
        make_args: Mapping[str, Any] | None = None,
        control_rate: float | None = None,
        out_of_range: Literal["reject", "clip"] = "clip",
        hold: Literal["repeat", "zero"] = "repeat",
        prompt: str | None = None,
    ) -> None:
        self._env = vec = _vector(env, num_envs, dict(make_args or {}))
        mode = vec.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            there_are = ", ".join(str(each) for each in AutoresetMode)
            raise UsageError(
                f"{type(vec).__name__}: metadata['autoreset_mode'] is {mode!r}, expected one of {there_are}"
            )
        self._mode = mode
        if mode is AutoresetMode.SAME_STEP:
            _keep_last_observations(vec)
        self.num_envs = vec.num_envs
        self.contract = Contract.from_spaces(
            vec.single_observation_space,
            vec.single_action_space,
            control_rate_of(vec, control_rate),
            robot_type=getattr(vec.spec, "id", None) or type(vec).__name__,
            out_of_range=out_of_range,
            hold=hold,
        )
        self._prompt = self.contract.robot_type or "" if prompt is None else prompt
        self._start({})

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> str:
        value, _ = self._env.reset(seed=seed or 0, options=dict(options) if options is not None else None)
        self._start({name: np.array(array) for name, array in self._flat(value).items()})
        return self._prompt

    def step(self, action: Array) -> None:
        vec, over = self._env, self._terminated | self._truncated
        if (
            over.any()
            and self._mode is AutoresetMode.DISABLED
            and isinstance(vec.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        ):
            vec.reset(options={"reset_mask": over.copy()})  # they refuse to step a world that is over
        space = vec.action_space
        actions = np.array(action, dtype=space.dtype).reshape(space.shape or ())
        value, reward, terminated, truncated, info = vec.step(actions)
        going = ~over
        for name, array in self._flat(value).items():
            self._data[name][going] = array[going]
        self._terminated |= going & np.asarray(terminated)
        self._truncated |= going & np.asarray(truncated)
        self._reward = np.where(going, np.asarray(reward, np.float64), 0.0)
        ended = going & (self._terminated | self._truncated)
        if self._mode is AutoresetMode.SAME_STEP:
            for slot in np.flatnonzero(ended).tolist():
                self._put_final(slot, info)
        self._keep_success(going, ended, info)

    def get_observation(self) -> Observation:
        return Observation(
            data=self._data,
            terminated=self._terminated,
            truncated=self._truncated,
            reward=self._reward,
            success=self._success,
        )

    def close(self) -> None:
        self._env.close()

    def _start(self, data: dict[str, Array]) -> None:
        self._data = data
        self._terminated = np.zeros(self.num_envs, np.bool_)
        self._truncated = np.zeros(self.num_envs, np.bool_)
        self._reward = np.zeros(self.num_envs)
        self._success: NDArray[np.bool_] | None = None

    def _flat(self, value: Any) -> dict[str, Array]:
        return flatten_observation(self._env.single_observation_space, value)

    def _put_final(self, slot: int, info: Mapping[str, Any]) -> None:
        """The last observation of ``slot``, which has been reset within the same step."""
        final = info.get("final_obs")
        if final is None:
            raise ContractError("final_obs", got="nothing in info", expected=f"slot {slot}'s last observation")
        each = isinstance(final, np.ndarray) and final.dtype == object
        flat = self._flat(final[slot]) if each else {name: a[slot] for name, a in self._flat(final).items()}
        for name, array in flat.items():
            self._data[name][slot] = array

    def _keep_success(self, going: Array, ended: Array, info: Mapping[str, Any]) -> None:
        last = info.get("final_info")
        for where, slots in ((info, going), (last if isinstance(last, Mapping) else {}, ended)):
            for key in ("success", "is_success"):
                if key in where:
                    told = slots & np.asarray(where.get(f"_{key}", True))
                    before = np.zeros(self.num_envs, np.bool_) if self._success is None else self._success
                    self._success = np.where(told, np.asarray(where[key]).astype(np.bool_), before)


class _Copied(gym.ObservationWrapper[Any, Any, Any]):
    """Hands out copies, so that an environment may reuse its buffer."""

    def observation(self, observation: Any) -> Any:
        return deepcopy(observation)


def _keep_last_observations(vec: Vector) -> None:
    base = vec.unwrapped
    if isinstance(base, AsyncVectorEnv):
        raise UsageError(
            "an AsyncVectorEnv with AutoresetMode.SAME_STEP can lose last observations; expected NEXT_STEP or DISABLED"
        )
    if isinstance(base, SyncVectorEnv):
        base.envs = [env if isinstance(env, _Copied) else _Copied(env) for env in base.envs]


def _vector(env: str | Vector | Callable[..., Vector], num_envs: int | None, args: dict[str, Any]) -> Vector:
    if isinstance(env, VectorEnv):
        if args or num_envs not in (None, env.num_envs):
            raise UsageError(f"num_envs and make_args are for one that is made here; this has {env.num_envs} already")
        return env
    try:
        made = gym.make_vec(env, num_envs=num_envs or 1, **args) if isinstance(env, str) else env(**args)
    except (gym.error.Error, ImportError, TypeError) as error:
        raise UsageError(f"{env} could not be made: {error}") from error
    if not isinstance(made, VectorEnv):
        raise UsageError(f"{env} is a {type(made).__name__}, expected a gymnasium.vector.VectorEnv")
    return made
