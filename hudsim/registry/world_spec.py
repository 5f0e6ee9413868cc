"""From a world's name and settings to the ``WorldSpec`` that another process makes it from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hudsim.errors import UnknownName, UsageError
from hudsim.registry.arguments import Arguments
from hudsim.registry.entry import Entry
from hudsim.registry.names import find, worlds
from hudsim.robot.spec import WorldSpec

__all__ = ["is_url", "world"]

_GYM = "hudsim.bridges.gym_env:GymBridge"
_MJCF = "hudsim.bridges.mjcf:MjcfBridge"
_MJCF_DEFAULTS = {"max_ticks": 1000}  # a model says nothing about an end


def is_url(name: str) -> bool:
    """Whether a world's name is the address of a server."""
    return name.startswith(("ws://", "wss://"))


def world(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    cameras: bool | None = None,
    privileged: bool = False,
    control_rate: float | None = None,
) -> WorldSpec:
    """How to make the world of ``name``; nothing is built.

    settings
        Arguments of what makes the world; what it does not take goes to each ``reset``, if that takes it.
    cameras
        Whether it shall have cameras. None: as it has them by itself.
    privileged
        It shall show what a real robot would not have.
    control_rate
        Hz, for a world that can be made for that rate. None: its own.

    Raises :class:`~hudsim.errors.UnknownName` for a name or setting that is not there, and
    :class:`~hudsim.errors.UsageError` for a wish that the world has no argument for.
    """
    if is_url(name):
        raise UsageError("a server that runs already is not made here")
    entry = find(name, "world", _prefixed(name), worlds())
    spec = WorldSpec(entry.target, {**entry.defaults, **entry.args})
    if not settings and cameras is None and not privileged and control_rate is None:
        return spec  # an import saved: a simulator may take seconds to come, and runs in another process
    made = entry.load()
    takes = Arguments.of(made)
    wishes = _wishes(name, takes, cameras, privileged, control_rate)
    args, task_args = _split(entry, settings or {}, takes, Arguments.of_reset(made))
    return replace(spec, args={**spec.args, **wishes, **args}, task_args=task_args)


def _prefixed(name: str) -> Entry | None:
    """What a name with a colon says by itself. None: it has no colon."""
    prefix, colon, rest = name.partition(":")
    if not colon:
        return None
    if prefix == "gym":
        if not rest:
            raise UsageError("gym: expected an environment, as in gym:HalfCheetah-v5")
        return Entry(name, _GYM, "", {"env": rest}, rest="make_args")
    if prefix == "mjcf":
        file = Path(rest).expanduser()
        if not file.is_file():
            raise UsageError(f"{name}: there is no file {file}")
        return Entry(name, _MJCF, "", {"file": str(file.resolve())}, _MJCF_DEFAULTS)
    return Entry(name, name, "")


def _split(
    entry: Entry, settings: Mapping[str, Any], takes: Arguments, task: Arguments
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``settings`` as (arguments of the world, arguments of each reset)."""
    args: dict[str, Any] = {}
    task_args: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    free = [name for name in takes.names if name not in entry.args]
    for key, value in settings.items():
        if key in free:
            args[key] = value
        elif key in task.names:
            task_args[key] = value
        elif key in entry.args or not (entry.rest or takes.open or task.open):
            raise UnknownName(f"{entry.name} setting", key, [*free, *task.names])
        else:
            (rest if entry.rest else args if takes.open else task_args)[key] = value
    if entry.rest is not None and rest:
        args[entry.rest] = {**args.get(entry.rest, {}), **rest}
    return args, task_args


def _wishes(
    name: str, takes: Arguments, cameras: bool | None, privileged: bool, control_rate: float | None
) -> dict[str, Any]:
    """The arguments that what was asked for by other means comes to."""
    args: dict[str, Any] = {}
    if cameras is not None:
        which = next((n for n in ("cameras", "camera") if n in takes.names), None)
        if which is None:
            raise UsageError(f"world {name} has no say about cameras: what makes it takes no argument `cameras`")
        if not cameras or isinstance(takes.names[which], bool):
            args[which] = cameras
    if privileged:
        if "privileged" not in takes.names:
            raise UsageError(
                f"world {name} cannot be asked for privileged features (what makes it takes no argument `privileged`), "
                "and policies such as scripted and mpc need them"
            )
        args["privileged"] = True
    if control_rate is not None:
        if "control_rate" not in takes.names:
            there_are = f"; there are: {', '.join(sorted(takes.names))}" if takes.names else ""
            raise UsageError(
                f"world {name} has a rate of its own, got {control_rate:g} Hz: what makes it takes no argument "
                f"`control_rate`{there_are}"
            )
        args["control_rate"] = control_rate
    return args
