"""Making a Gymnasium environment from its name, and what a bridge wants to know of one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import os
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from hudsim.bridges.rendering import Profile, apply_profile, gl_backend
from hudsim.errors import UnknownName, UsageError

__all__ = ["Env", "control_rate_of", "focus", "make_env", "mujoco_parts", "prepare_rendering", "release"]

Env = gym.Env[Any, Any]

_DEFAULT_RATE = 50.0
_VERSIONED = re.compile(r"(^|/)[\w.-]+-v\d+$")
_PLAIN = (
    *(str, bytes, int, float, complex, type(None), type, list, tuple, set),
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType),
)


def make_env(env: str | Env, make_args: Mapping[str, Any], *, rgb: bool) -> Env:
    """The environment that ``env`` names, or ``env`` itself.

    A Gymnasium id (``HalfCheetah-v5``, ``module:Name-v0`` to import what registers it), a factory or class in a
    module (``package.module:make``) or in a file (``envs/mine.py:make``). ``make_args`` are its keyword arguments;
    with ``rgb`` it is asked for ``render_mode="rgb_array"`` if it takes that.

    Raises :class:`~hudsim.errors.UsageError` for what is not there, cannot be made, or is not a ``gymnasium.Env``.
    """
    gl_backend()  # before anything imports mujoco
    from hudsim.bridges.physics_log import log_warnings

    log_warnings()
    if isinstance(env, str):
        maker, named = _factory(env)
        args = dict(make_args)
        if rgb and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws the same without looking for a screen
        if rgb and "render_mode" not in args and _takes(maker, "render_mode"):
            args["render_mode"] = "rgb_array"
        try:
            made = maker(**args)
        except (gym.error.Error, ImportError, TypeError) as error:
            raise UsageError(f"{named} could not be made: {error}") from error
    else:
        if make_args:
            raise UsageError("make_args are for an environment that is made here; this one has been made already")
        made, named = env, type(env).__name__
    if isinstance(made, gym.vector.VectorEnv):
        raise UsageError(
            f"{named} is a vector environment ({type(made).__name__}); GymVectorBridge serves the worlds of a "
            "SyncVectorEnv one by one, GymBatchBridge any of them as a whole"
        )
    if not isinstance(made, gym.Env):
        raise UsageError(f"{named} is a {type(made).__module__}.{type(made).__name__}, expected a gymnasium.Env")
    return made


def _factory(env: str) -> tuple[Callable[..., Any], str]:
    """What makes the environment, and what to call it in messages."""
    where, colon, name = env.rpartition(":")
    if colon and where.endswith(".py"):
        return _attribute(_module_of(Path(where)), name, where), env
    if colon and not _VERSIONED.search(name):
        try:
            module = importlib.import_module(where)
        except ImportError as error:
            raise UsageError(f"{env}: {error}") from error
        return _attribute(module, name, where), env

    def make(**args: Any) -> Env:
        return gym.make(env, **args)

    return make, f"gym:{env}"


def _module_of(file: Path) -> Any:
    if not file.is_file():
        raise UsageError(f"no file {str(file)!r}")
    name = f"_hudsim_env_{file.stem}_{abs(hash(file.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def _attribute(module: Any, name: str, where: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        there = [
            key
            for key, value in vars(module).items()
            if callable(value) and not key.startswith("_") and _is_of(value, module.__name__)
        ]
        raise UnknownName(f"factory in {where}", name, there)
    return found  # type: ignore[no-any-return]


def _is_of(value: Any, module: str) -> bool:
    """Whether it was made in ``module`` or below, and not imported from elsewhere."""
    where = getattr(value, "__module__", None) or ""
    return where == module or where.startswith(f"{module}.")


def _takes(maker: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(maker).parameters.values()
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


def control_rate_of(env: Env | gym.vector.VectorEnv[Any, Any, Any], asked: float | None = None) -> float:
    """Steps a second: 1/dt if the environment has a ``dt``, else what is ``asked``, its ``render_fps`` or 50.

    Raises :class:`~hudsim.errors.UsageError` if another rate is asked for than its ``dt`` comes to.
    """
    base = env.unwrapped
    dt = getattr(base, "dt", None)
    if isinstance(dt, int | float) and math.isfinite(dt) and dt > 0:
        rate = 1.0 / float(dt)
        rate = round(rate) if math.isclose(rate, round(rate), rel_tol=1e-9) else rate
        if asked is not None and not math.isclose(asked, rate, rel_tol=1e-3):
            raise UsageError(
                f"control_rate: got {asked:g} Hz, but a step of {type(base).__name__} is {dt:g} s, its own rate "
                f"{rate:g} Hz"
            )
        return rate
    if asked is not None:
        return asked
    fps = (base.metadata or {}).get("render_fps")
    return float(fps) if isinstance(fps, int | float) and fps > 0 else _DEFAULT_RATE


def prepare_rendering(
    env: Env, *, camera: bool | str, width: int | None, height: int | None, profile: Profile = "auto"
) -> None:
    """Set size and camera of Gymnasium's own MuJoCo renderer, and make every MuJoCo model in ``env`` cheap to draw.

    Before its first frame. Does nothing to an environment that has no MuJoCo model.
    Raises :class:`~hudsim.errors.UnknownName` for a camera that the model has not.
    """
    renderer = getattr(env.unwrapped, "mujoco_renderer", None)
    if renderer is not None:
        renderer.width, renderer.height = width or renderer.width, height or renderer.height
        size = renderer.model.vis.global_
        size.offwidth, size.offheight = max(size.offwidth, renderer.width), max(size.offheight, renderer.height)
    if isinstance(camera, str):
        if renderer is None:
            raise UsageError(f"camera {camera!r}: only Gymnasium's MuJoCo environments have cameras by name")
        names = [renderer.model.camera(i).name for i in range(renderer.model.ncam)]
        if camera not in names:
            raise UnknownName("camera", camera, names)
        renderer.camera_id = names.index(camera)
    for model in mujoco_parts(env)[0]:
        apply_profile(model, profile)


def focus(env: Env) -> None:
    """Make the OpenGL context of Gymnasium's MuJoCo renderer the current one; nothing where there is none.

    It does so itself only when it is made, so that beside another environment it would draw the other one, or black.
    """
    for viewer in _viewers(env):
        viewer.make_context_current()


def release(env: Env) -> None:
    """Free what Gymnasium's MuJoCo renderer holds in its own OpenGL context, before ``env.close()``.

    It leaves that to the garbage collector, which then frees the buffers of whichever context is current.
    """
    for viewer in _viewers(env):
        viewer.make_context_current()
        viewer.con.free()


def _viewers(env: Env) -> list[Any]:
    viewer = getattr(getattr(env.unwrapped, "mujoco_renderer", None), "viewer", None)
    return [] if viewer is None else [viewer]


def mujoco_parts(env: Env) -> tuple[list[Any], list[Any]]:
    """Every ``MjModel`` and ``MjData`` in ``env``, wherever its authors keep them (also dm_control's ``physics``)."""
    import mujoco

    held = list(_held(env, depth=6))
    models = [thing for thing in held if isinstance(thing, mujoco.MjModel)]
    return models, [thing for thing in held if isinstance(thing, mujoco.MjData)]


def _held(root: Any, depth: int) -> Iterator[Any]:
    """What ``root`` reaches through attributes, the near ones first; at most a few thousand objects."""
    seen, queue = {id(root)}, deque([(root, 0)])
    while queue and len(seen) < 4000:
        thing, level = queue.popleft()
        yield thing
        if level == depth:
            continue
        values = list(getattr(thing, "__dict__", {}).values())
        if type(thing).__module__.startswith("dm_control"):
            values += [value for name in ("ptr", "model", "data") if (value := getattr(thing, name, None)) is not None]
        for value in values:
            if id(value) not in seen and not isinstance(value, _PLAIN):
                seen.add(id(value))
                queue.append((value, level + 1))
