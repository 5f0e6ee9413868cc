"""``GymBridge``: any Gymnasium environment as a world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import cv2
import gymnasium as gym
import numpy as np

from hudsim.bridges.gym_make import Env, control_rate_of, focus, make_env, mujoco_parts, prepare_rendering, release
from hudsim.bridges.physics_log import check_divergence, keep_divergence
from hudsim.contract import Contract
from hudsim.contract.spaces import flatten_observation, to_env_action
from hudsim.errors import ContractError, UsageError
from hudsim.robot.bridge import Array, Observation, RobotBridge

__all__ = ["GymBridge", "GymWorld", "observed"]

_CAMERA = "observation/camera"


class GymWorld:
    """One environment and what it showed last; :class:`GymBridge` and its like are made of these.

    :meth:`see` gives copies, so that an environment may go on writing into its own buffers. ``success`` is None as long
    as ``info`` holds neither ``is_success`` nor ``success``. Options are :class:`GymBridge`'s.
    """

    def __init__(
        self,
        env: str | Env,
        *,
        make_args: Mapping[str, Any] | None = None,
        camera: bool | str = False,
        width: int | None = None,
        height: int | None = None,
        max_ticks: int | None = None,
    ) -> None:
        if (width or height) and not camera:
            raise UsageError("width and height are the camera's, and no camera is asked for: camera=True")
        self.env = make_env(env, make_args or {}, rgb=bool(camera))
        self.name = env if isinstance(env, str) else getattr(self.env.spec, "id", None) or type(self.env).__name__
        self.camera = bool(camera)
        self._size, self._max_ticks = (width, height), max_ticks
        if camera and self.env.render_mode != "rgb_array":
            raise UsageError(
                f"a camera needs an environment that renders: {self.name} has render_mode "
                f"{self.env.render_mode!r}, expected 'rgb_array'"
            )
        if camera or _shows_images(self.env.observation_space):
            prepare_rendering(self.env, camera=camera, width=width, height=height)
        models, self._physics = mujoco_parts(self.env)
        for model in models:
            keep_divergence(model)
        self.data: dict[str, Array] = {}
        self._drawn = False
        self.ticks = 0
        self.reward = 0.0
        self.terminated = self.truncated = False
        self.success: bool | None = None

    def contract(
        self, control_rate: float | None, out_of_range: Literal["reject", "clip"], hold: Literal["repeat", "zero"]
    ) -> Contract:
        """From the environment's spaces. With a camera it is reset once, for a first frame."""
        contract = Contract.from_spaces(
            self.env.observation_space,
            self.env.action_space,
            control_rate_of(self.env, control_rate),
            robot_type=self.name,
            out_of_range=out_of_range,
            hold=hold,
        )
        if not self.camera:
            return contract
        if _CAMERA in contract.features:
            raise ContractError(_CAMERA, got="an observation of that name", expected="no camera, or another name")
        self.reset(0, None)
        frame = self.see()[_CAMERA]
        document = contract.to_json()
        rgb = {"role": "observation", "type": "rgb", "dtype": "uint8", "shape": list(frame.shape)}
        document["features"] = {_CAMERA: rgb, **document["features"]}
        return Contract.load(document)

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start an episode. A seed of None is 0, for the start is to be a function of the arguments alone."""
        focus(self.env)
        value, info = self.env.reset(seed=seed or 0, options=dict(options) if options is not None else None)
        self.ticks, self.reward = 0, 0.0
        self.terminated = self.truncated = False
        self._keep(value, info)

    def step(self, action: Array) -> None:
        """One step with a checked action [*shape]. Raises ``SimDiverged`` if a MuJoCo simulation in it diverges."""
        focus(self.env)
        value, reward, terminated, truncated, info = self.env.step(to_env_action(self.env.action_space, action))
        self.ticks += 1
        self.reward = float(reward)
        self.terminated = bool(terminated)
        self.truncated = bool(truncated) or (self._max_ticks is not None and self.ticks >= self._max_ticks)
        for physics in self._physics:
            check_divergence(physics, self.ticks)
        self._keep(value, info)

    def see(self) -> dict[str, Array]:
        """What it shows now, {feature: [*shape]}. The frame is drawn when it is first asked for."""
        if self.camera and not self._drawn:
            self.data[_CAMERA] = self._frame()
            self._drawn = True
        return self.data

    def close(self) -> None:
        """Close the environment."""
        release(self.env)
        self.env.close()

    def _keep(self, value: Any, info: Mapping[str, Any]) -> None:
        self.data = {
            name: np.array(array) for name, array in flatten_observation(self.env.observation_space, value).items()
        }
        self._drawn = False
        told = info.get("is_success", info.get("success"))
        if told is not None:
            self.success = bool(np.all(told))
        elif self.ticks == 0:
            self.success = None
        elif self.success is not None:
            self.success = False  # it holds now or it does not; what was told before is not now

    def _frame(self) -> Array:
        focus(self.env)
        try:
            frame = self.env.render()
        except gym.error.DependencyNotInstalled as error:
            raise UsageError(f"{self.name} cannot render: {error}") from error
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            got = f"{frame.dtype} {list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise ContractError(_CAMERA, got=f"{got} from render()", expected="uint8 [H, W, 3]")
        width, height = self._size[0] or frame.shape[1], self._size[1] or frame.shape[0]
        if (height, width) != frame.shape[:2]:
            return cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
        return np.array(frame)


def observed(worlds: list[GymWorld]) -> Observation:
    """The observation of all ``worlds`` together."""
    seen = [world.see() for world in worlds]
    told = [world.success for world in worlds]
    return Observation(
        data={name: np.stack([data[name] for data in seen]) for name in seen[0]},
        terminated=np.array([world.terminated for world in worlds]),
        truncated=np.array([world.truncated for world in worlds]),
        reward=np.array([world.reward for world in worlds]),
        success=None if all(success is None for success in told) else np.array([bool(success) for success in told]),
    )


class GymBridge(RobotBridge):
    """One Gymnasium environment.

    Its observations become ``observation/...`` and its action ``action`` as
    :func:`hudsim.contract.spaces.contract_from_spaces` says; what cannot be carried is refused by name. Terminated,
    truncated and the reward stay apart; success is ``is_success`` or ``success`` of ``info``, where there is one.

    env
        What :func:`~hudsim.bridges.gym_make.make_env` takes: ``HalfCheetah-v5``, ``module:factory``,
        ``file.py:factory``; or an environment that lives already (in this process only).
    make_args
        Keyword arguments for the environment or factory.
    camera
        True adds what ``render()`` draws as ``observation/camera``; a name picks that camera of a Gymnasium MuJoCo
        environment. Without a GPU its MuJoCo models are drawn without shadows, multisampling and reflections.
    width, height
        Of that image in pixels. None: as the environment has it.
    control_rate
        Steps a second; where the environment has a ``dt`` nothing but 1/dt. None: that, else its ``render_fps``,
        else 50.
    max_ticks
        Truncated at that step, beside any limit of the environment's own.
    out_of_range, hold
        For a Box action, of which Gymnasium says neither: ``clip`` or ``reject``; what a starved tick does, ``repeat``
        or ``zero`` (for torques).
    """

    contract: Contract

    def __init__(
        self,
        env: str | Env,
        *,
        make_args: Mapping[str, Any] | None = None,
        camera: bool | str = False,
        width: int | None = None,
        height: int | None = None,
        control_rate: float | None = None,
        max_ticks: int | None = None,
        out_of_range: Literal["reject", "clip"] = "clip",
        hold: Literal["repeat", "zero"] = "repeat",
        prompt: str | None = None,
    ) -> None:
        self._world = GymWorld(env, make_args=make_args, camera=camera, width=width, height=height, max_ticks=max_ticks)
        try:
            self.contract = self._world.contract(control_rate, out_of_range, hold)
        except BaseException:
            self._world.close()
            raise
        self._prompt = self._world.name if prompt is None else prompt

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> str:
        self._world.reset(seed, options)
        return self._prompt

    def step(self, action: Array) -> None:
        self._world.step(action[0])

    def get_observation(self) -> Observation:
        return observed([self._world])

    def close(self) -> None:
        self._world.close()


def _shows_images(space: Any) -> bool:
    parts = space.spaces.values() if isinstance(space, gym.spaces.Dict) else getattr(space, "spaces", None)
    if parts is not None:
        return any(_shows_images(part) for part in parts)
    return isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) >= 2
