"""``MjcfBridge``: any MJCF file as a world: actuators the action, joints and sensors the state, cameras the images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from hudsim.bridges.physics_log import check_divergence, keep_divergence, log_warnings
from hudsim.bridges.rendering import Cameras, Profile, apply_profile, camera_names
from hudsim.contract import Contract
from hudsim.errors import UnknownName, UsageError
from hudsim.robot.bridge import Array, Observation, RobotBridge

__all__ = ["MjcfBridge", "Outcome", "whole_substeps"]

_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS
_SCALAR = {int(mujoco.mjtJoint.mjJNT_HINGE): ("rad", "rad/s"), int(mujoco.mjtJoint.mjJNT_SLIDE): ("m", "m/s")}
_DIRECT = {
    int(mujoco.mjtDyn.mjDYN_NONE),
    int(mujoco.mjtDyn.mjDYN_FILTER),
    int(mujoco.mjtDyn.mjDYN_FILTEREXACT),
}
_OWN = ("state", "sensors", "physics")


class Outcome(NamedTuple):
    """What a task says of one tick: its reward, whether it is over, whether its goal holds. None: it does not say."""

    reward: float | None = None
    terminated: bool = False
    success: bool | None = None


class MjcfBridge(RobotBridge):
    """One world from one MJCF file.

    The action has one number an actuator, named and limited (clipped) as the file says; a starved tick repeats
    targets of position servos and zeroes everything else. ``observation/state`` holds the positions (rad, m) of the
    hinge and slide joints under their names, then their velocities as ``NAME.vel``; ``observation/sensors`` the
    file's sensors; ``observation/CAMERA`` its images. Free and ball joints are no encoder's to measure: they are part
    of ``observation/physics``, MuJoCo's full physics state, which is there when ``privileged`` is asked for.

    Subclass it for a task: :meth:`randomise` the start, :meth:`outcome` for reward and ends.

    file
        Path of the MJCF file.
    control_rate
        Actions a second; its period must be a whole number of the file's timesteps.
    cameras
        True: all that have a name. False: none (needs no OpenGL). Else their names (``free`` is always there).
    width, height
        Of the images, in pixels.
    keyframe
        Where episodes start: a name or number. None: the file's own initial state.
    max_ticks
        Truncated at that tick. None: never.
    profile
        ``auto`` draws without shadows and reflections where there is no GPU, ``fast`` always, ``full`` never.

    Raises :class:`~hudsim.errors.UsageError` for a file that is missing, does not compile or has no actuator, and
    where cameras are asked for and there is no OpenGL.
    """

    contract: Contract

    def __init__(
        self,
        file: str | Path,
        *,
        control_rate: float = 50.0,
        cameras: bool | Sequence[str] = True,
        width: int = 224,
        height: int = 224,
        keyframe: str | int | None = None,
        privileged: bool = False,
        max_ticks: int | None = None,
        prompt: str = "",
        profile: Profile = "auto",
    ) -> None:
        log_warnings()
        self.model, self._source = _compile(Path(file))
        keep_divergence(self.model)
        self.data = mujoco.MjData(self.model)
        self.substeps = whole_substeps(control_rate, self.model.opt.timestep)
        self.ticks = 0
        self._max_ticks = max_ticks
        self._prompt = prompt or f"drive {Path(file).stem}"
        self._keyframe = _keyframe(self.model, keyframe)
        self._privileged = privileged
        self._joints = [j for j in range(self.model.njnt) if int(self.model.jnt_type[j]) in _SCALAR]
        wanted = (camera_names(self.model) if cameras else []) if isinstance(cameras, bool) else list(cameras)
        self._cameras: Cameras | None = None
        if wanted:
            apply_profile(self.model, profile)
            self._cameras = Cameras(self.model, wanted, width, height)
        self.contract = Contract.load(self._document(control_rate))

    def randomise(self, rng: np.random.Generator) -> None:
        """Change ``self.data`` for a new episode. It holds the initial state or keyframe; ``rng`` is the seed's."""

    def outcome(self) -> Outcome:
        """Judge ``self.data`` after the tick number ``self.ticks`` (0: the reset)."""
        return Outcome()

    def reset(self, seed: int | None = None) -> str:
        if self._keyframe is None:
            mujoco.mj_resetData(self.model, self.data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, self.data, self._keyframe)
        self.ticks = 0
        self.randomise(np.random.default_rng(seed or 0))
        mujoco.mj_forward(self.model, self.data)
        check_divergence(self.data, self.ticks)
        return self._prompt

    def step(self, action: Array) -> None:
        self.data.ctrl[:] = action[0]
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)
        # A step leaves poses and sensors as they were before its last integration. Always, also without cameras:
        # it warms the solver, and the trajectory must not depend on who looks.
        mujoco.mj_forward(self.model, self.data)
        self.ticks += 1
        check_divergence(self.data, self.ticks)

    def get_observation(self) -> Observation:
        model, data = self.model, self.data
        state = [*data.qpos[model.jnt_qposadr[self._joints]], *data.qvel[model.jnt_dofadr[self._joints]]]
        observed: dict[str, Array] = {}
        if self._cameras is not None:
            for name in self._cameras.names:
                image = self._cameras.render(data, name, self.out(f"observation/{name}"))
                observed[f"observation/{name}"] = image[np.newaxis]
        if state:
            observed["observation/state"] = np.array([state], np.float32)
        if model.nsensordata:
            observed["observation/sensors"] = np.array([data.sensordata], np.float32)
        if self._privileged:
            physics = np.empty((1, mujoco.mj_stateSize(model, _PHYSICS)))
            mujoco.mj_getState(model, data, physics[0], _PHYSICS)
            observed["observation/physics"] = physics
        reward, terminated, success = self.outcome()
        late = self._max_ticks is not None and self.ticks >= self._max_ticks
        return Observation(
            data=observed,
            terminated=np.array([terminated]),
            truncated=np.array([late and not terminated]),
            reward=None if reward is None else np.array([reward]),
            success=None if success is None else np.array([success]),
            info={"sim_time": data.time},
        )

    def close(self) -> None:
        if self._cameras is not None:
            self._cameras.close()

    def capability_params(self) -> dict[str, Any]:
        """``model``: the MJCF text, for planners. Left out where it needs files beside it (meshes, textures)."""
        return {} if self._source is None else {"model": self._source}

    def _document(self, control_rate: float) -> dict[str, Any]:
        model, observed = self.model, {}
        if self._cameras is not None:
            for name in self._cameras.names:
                if name in _OWN:
                    raise UsageError(f"a camera called {name!r}: observation/{name} is taken; rename it in the file")
                observed[f"observation/{name}"] = _observation(self._cameras.shape, "uint8", type="rgb")
        if self._joints:
            names = [_name(model.joint(j).name, "joint", j) for j in self._joints]
            units = [_SCALAR[int(model.jnt_type[j])] for j in self._joints]
            observed["observation/state"] = _observation(
                (2 * len(names),),
                "float32",
                names=[*names, *(f"{name}.vel" for name in names)],
                unit=[*(position for position, _ in units), *(velocity for _, velocity in units)],
            )
        if model.nsensordata:
            observed["observation/sensors"] = _observation((model.nsensordata,), "float32", names=_sensor_names(model))
        if self._privileged:
            size = mujoco.mj_stateSize(model, _PHYSICS)
            observed["observation/physics"] = _observation((size,), "float64", privileged=True)
        if not observed:
            raise UsageError("nothing to observe: the file has no hinge or slide joint, no sensor and no camera")
        return {
            "schema": "hudsim/1",
            "robot_type": _text(model.names[: model.names.index(b"\0")]) or "mjcf",
            "control_rate": float(control_rate),
            "features": {**observed, "action": _action(model)},
        }


def whole_substeps(control_rate: float, timestep: float) -> int:
    """Physics steps a control tick. Raises :class:`~hudsim.errors.UsageError` if they are not a whole number."""
    if not (math.isfinite(control_rate) and control_rate > 0):
        raise UsageError(f"a control rate of {control_rate} Hz; expected more than 0")
    exact = 1.0 / (control_rate * timestep)
    if exact >= 1 - 1e-6 and abs(exact - round(exact)) < 1e-6 * exact:
        return round(exact)
    near = sorted({max(1, math.floor(exact)), max(1, math.ceil(exact))})
    rates = " or ".join(f"{1.0 / (n * timestep):.6g}" for n in near)
    raise UsageError(
        f"{control_rate:g} Hz is {exact:.4g} timesteps of {timestep:g} s; expected a whole number: {rates} Hz"
    )


def _compile(file: Path) -> tuple[Any, str | None]:
    """The model and, if it stands on its own, its MJCF text."""
    if not file.is_file():
        raise UsageError(f"no MJCF file {str(file)!r}")
    try:
        spec = mujoco.MjSpec.from_file(str(file))
        model = spec.compile()
    except ValueError as error:
        raise UsageError(f"{file}: {str(error).strip()}") from error
    if model.nu == 0:
        raise UsageError(f"{file}: no actuator, so there is nothing to command")
    if any(asset.file for asset in (*spec.meshes, *spec.hfields, *spec.skins)) or any(
        texture.file or any(texture.cubefiles) for texture in spec.textures
    ):
        return model, None
    text = file.read_text(encoding="utf-8", errors="replace")
    # As written, where it can be: MuJoCo's own text has six digits and so is another model.
    return model, spec.to_xml() if "<include" in text else text


def _keyframe(model: Any, keyframe: str | int | None) -> int | None:
    if keyframe is None:
        return None
    names = {_name(model.key(k).name, "key", k): k for k in range(model.nkey)}
    if isinstance(keyframe, str) and keyframe in names:
        return names[keyframe]
    if isinstance(keyframe, int) and 0 <= keyframe < model.nkey:
        return keyframe
    raise UnknownName("keyframe", str(keyframe), names)


def _observation(shape: tuple[int, ...], dtype: str, **more: Any) -> dict[str, Any]:
    return {"role": "observation", "dtype": dtype, "shape": list(shape), **more}


def _action(model: Any) -> dict[str, Any]:
    limits = [
        [float(v) for v in span] if limited else [None, None]
        for span, limited in zip(model.actuator_ctrlrange, model.actuator_ctrllimited, strict=True)
    ]
    return {
        "role": "action",
        "dtype": "float32",
        "shape": [model.nu],
        "names": [_name(model.actuator(a).name, "actuator", a) for a in range(model.nu)],
        "limits": {"min": [low for low, _ in limits], "max": [high for _, high in limits]},
        "out_of_range": "clip",
        "hold": ["repeat" if _is_position_servo(model, a) else "zero" for a in range(model.nu)],
    }


def _is_position_servo(model: Any, actuator: int) -> bool:
    """Whether ctrl is a target that stays where it is: a force against the distance to it, not its integral."""
    affine = int(model.actuator_biastype[actuator]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
    return bool(
        affine and model.actuator_biasprm[actuator, 1] != 0 and int(model.actuator_dyntype[actuator]) in _DIRECT
    )


def _sensor_names(model: Any) -> list[str]:
    names = []
    for s in range(model.nsensor):
        name, dim = _name(model.sensor(s).name, "sensor", s), int(model.sensor_dim[s])
        names += [name] if dim == 1 else [f"{name}.{i}" for i in range(dim)]
    return names


def _name(given: str, kind: str, index: int) -> str:
    return given or f"{kind}{index}"


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
