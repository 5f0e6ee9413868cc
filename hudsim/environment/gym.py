"""``gym_spec``: how another process makes the Gymnasium environment that ``env.gym`` was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.errors import UsageError
from hudsim.robot.spec import WorldSpec
from hudsim.target import target_of

__all__ = ["gym_spec"]

_BRIDGE = "hudsim.bridges.gym_env:GymBridge"


def gym_spec(target: Any, options: Mapping[str, Any]) -> WorldSpec:
    """The world of ``target``: an id, ``module:factory``, a factory, a class, or an environment with a spec.

    Raises :class:`~hudsim.errors.UsageError` for what another process cannot make again.
    """
    args = dict(options)
    if isinstance(target, str):
        return WorldSpec(_BRIDGE, {"env": target, **args})
    if callable(target):
        return WorldSpec(_BRIDGE, {"env": _importable(target), **args})
    spec = getattr(target, "spec", None)
    if spec is None or not isinstance(getattr(spec, "id", None), str):
        raise UsageError(f"gym: got a {type(target).__name__}, expected an id, a factory, or what gymnasium.make made")
    made_with = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    target.close()
    return WorldSpec(_BRIDGE, {"env": spec.id, **args, "make_args": {**made_with, **args.get("make_args", {})}})


def _importable(factory: Any) -> str:
    name = getattr(factory, "__qualname__", "<lambda>")
    if "<" in name or "." in name:
        raise UsageError(f"gym: {name} is local; move the factory to the top of a module, where a process can find it")
    return target_of(factory)
