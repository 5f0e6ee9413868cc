"""Gymnasium's spaces as a contract, and values on their way between the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from hudsim.contract.arrays import Array
from hudsim.contract.document import RESERVED_NAMES, Contract
from hudsim.contract.feature import DTYPES
from hudsim.contract.fill import image_type
from hudsim.contract.refusal import nearest
from hudsim.errors import ContractError

__all__ = ["PREFIX", "contract_from_spaces", "flatten_observation", "to_env_action"]

PREFIX = "observation"
_MOST_LIMITS = 1024
"""An observation with more numbers than this states its limits only if one pair does for all."""
_CARRIED = "Box, Discrete, MultiDiscrete or MultiBinary"


def contract_from_spaces(
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    control_rate: float | None,
    *,
    robot_type: str | None = None,
    privileged: Iterable[str] = (),
    out_of_range: Literal["reject", "clip"] = "reject",
    hold: Literal["repeat", "zero"] = "repeat",
) -> Contract:
    """A contract for one environment (not vectorised) with these spaces.

    A Dict observation's keys become ``observation/<key>``, nested ones ``observation/<key>/<key>``, a Tuple's
    keys are its indices; a single space is ``observation/state``, or ``observation/image`` if it is one. A Box of
    uint8 [H, W, 3] is ``rgb``, [H, W, 1] ``gray``, both sides at least 16 long; any other Box is carried exactly
    with no type. Discrete and MultiDiscrete are int64, their limits start … start + n - 1, MultiBinary is int8 0/1.
    A Box's infinite bounds are null. The action is called ``action``.

    ``control_rate`` is in Hz (None: not known yet), ``privileged`` holds feature names, or keys below
    ``observation/``. ``out_of_range`` and ``hold`` apply to a Box action, of which Gymnasium says neither.

    Raises :class:`~hudsim.errors.ContractError` for what cannot be carried: Text, Graph, Sequence, OneOf, a
    Dict or Tuple action, an image that is CHW, an observation called as the wire's own keys are.
    """
    features: dict[str, Any] = {}
    for name, space in _leaves(observation_space):
        if name in features:
            raise ContractError(name, got="two observations of this name", expected="one", hint="a key holds a '/'")
        features[name] = {"role": "observation", **_feature(name, space)}
    for name in privileged:
        full = name if name in features else f"{PREFIX}/{name}"
        if full not in features:
            raise ContractError(name, got="privileged", expected="an observation", hint=nearest(full, features))
        features[full]["privileged"] = True
    if isinstance(action_space, spaces.Dict | spaces.Tuple):
        kind = type(action_space).__name__
        raise ContractError("action", got=f"a {kind} space", expected=_CARRIED, hint="flatten it in a wrapper")
    action = {"role": "action", **_feature("action", action_space)}
    if isinstance(action_space, spaces.Box):
        action |= {"out_of_range": out_of_range, "hold": hold}
    features["action"] = action
    return Contract(robot_type=robot_type, control_rate=control_rate, features=features)


def flatten_observation(space: spaces.Space[Any], value: Any) -> dict[str, Array]:
    """An observation of ``space`` as {feature: array}, named as :func:`contract_from_spaces` names them.

    Nothing is cast beyond ``np.asarray`` (integers of a Discrete become int64). Arrays may carry a batch axis
    [N, ...] as a vector environment's do: only Dicts and Tuples are taken apart. Raises
    :class:`~hudsim.errors.ContractError` if a key is missing or the space does not have it.
    """
    return dict(_values(_single_name(space), space, value))


def to_env_action(space: spaces.Space[Any], array: Array) -> Any:
    """A checked action [*shape] as what ``env.step`` takes, so that ``space.contains`` holds of it.

    An int for a Discrete, else an array of the space's dtype and shape, the environment's own to change.
    """
    if isinstance(space, spaces.Discrete):
        return int(array)
    return np.array(array, dtype=space.dtype).reshape(space.shape or ())


def _single_name(space: spaces.Space[Any]) -> str:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return PREFIX
    if isinstance(space, spaces.Box) and image_type(space.shape, space.dtype):
        return f"{PREFIX}/image"
    return f"{PREFIX}/state"


def _parts(name: str, space: spaces.Space[Any]) -> list[tuple[Any, str, spaces.Space[Any]]] | None:
    """(key, feature name, space) of each part of a Dict or Tuple; None for a leaf."""
    if isinstance(space, spaces.Dict):
        return [(key, f"{name}/{key}", part) for key, part in space.spaces.items()]
    if isinstance(space, spaces.Tuple):
        return [(i, f"{name}/{i}", part) for i, part in enumerate(space.spaces)]
    return None


def _leaves(space: spaces.Space[Any], name: str | None = None) -> Iterator[tuple[str, spaces.Space[Any]]]:
    at_top = name is None
    name = _single_name(space) if name is None else name
    parts = _parts(name, space)
    if parts is None:
        yield name, space
        return
    for key, full, part in parts:
        if at_top and key in RESERVED_NAMES:
            hint = "rename it in a wrapper; the wire's own are: " + ", ".join(sorted(RESERVED_NAMES))
            raise ContractError(full, got=f"an observation called {key!r}", expected="another name", hint=hint)
        yield from _leaves(part, full)


def _values(name: str, space: spaces.Space[Any], value: Any) -> Iterator[tuple[str, Array]]:
    parts = _parts(name, space)
    if parts is None:
        array = np.asarray(value)
        # A Discrete(2) is often shown as a bool, which is the same number.
        whole = isinstance(space, spaces.Discrete) and array.dtype.kind in "biu"
        yield name, array.astype(np.int64) if whole else array
        return
    wanted = [key for key, _, _ in parts]
    if isinstance(space, spaces.Dict):
        there = list(value) if isinstance(value, Mapping) else None
    else:
        there = list(range(len(value))) if isinstance(value, Sequence) else None
    if there is None:
        raise ContractError(name, got=type(value).__name__, expected=type(space).__name__.lower())
    for key in [*wanted, *there]:
        if key not in there or key not in wanted:
            got = f"no {key!r}" if key not in there else f"{key!r}, which its space does not have"
            raise ContractError(name, got=got, expected=f"the keys {', '.join(map(str, wanted))}")
    for key, full, part in parts:
        yield from _values(full, part, value[key])


def _feature(name: str, space: spaces.Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Box):
        return _box(name, space)
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return {"dtype": "int64", "shape": (), "limits": {"min": start, "max": start + int(space.n) - 1}}
    if isinstance(space, spaces.MultiDiscrete):
        first, count = np.asarray(space.start, np.int64), np.asarray(space.nvec, np.int64)
        limits = {"min": first.tolist(), "max": (first + count - 1).tolist()}
        return {"dtype": "int64", "shape": space.shape, "limits": limits}
    if isinstance(space, spaces.MultiBinary):
        return {"dtype": "int8", "shape": space.shape, "limits": {"min": 0, "max": 1}}
    kind = type(space).__name__
    raise ContractError(name, got=f"a {kind} space", expected=_CARRIED, hint="leave it out or encode it in a wrapper")


def _box(name: str, space: spaces.Box) -> dict[str, Any]:
    dtype, shape = np.dtype(space.dtype), space.shape
    if dtype.name not in DTYPES:
        raise ContractError(name, got=f"a Box of {dtype}", expected=f"one of {', '.join(DTYPES)}")
    shown = name != "action"
    if shown and len(shape) == 3 and image_type((*shape[1:], shape[0]), dtype) and not image_type(shape, dtype):
        fix = "gymnasium.wrappers.TransformObservation with np.moveaxis(image, 0, -1)"
        raise ContractError(name, got=f"an image laid out CHW, {list(shape)}", expected="HWC", hint=f"wrap it: {fix}")
    feature: dict[str, Any] = {"dtype": dtype.name, "shape": shape}
    if shown and (image := image_type(shape, dtype)):
        return {**feature, "type": image}
    limits = {"min": _side(space.low, dtype, "min"), "max": _side(space.high, dtype, "max")}
    long = space.low.size > _MOST_LIMITS and any(isinstance(side, list) for side in limits.values())
    bounded = dtype.kind != "b" and any(side is not None for side in limits.values())
    if bounded and not (shown and long):
        feature["limits"] = limits
    return feature


def _side(bound: Array, dtype: np.dtype[Any], end: Literal["min", "max"]) -> Any:
    """One side's limits: a number if it is the same everywhere, None if that is no bound at all."""
    values = np.unique(bound)
    if len(values) != 1:
        return bound.tolist()
    value = values[0].item()
    if dtype.kind == "f":
        return None if np.isinf(value) else value
    return None if dtype.kind == "b" or value == getattr(np.iinfo(dtype), end) else value
