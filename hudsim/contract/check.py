"""``Checks``: a contract compiled into what runs every tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudsim.contract.action import ActionCheck
from hudsim.contract.arrays import Array, all_finite, as_array, cast, describe, place
from hudsim.contract.feature import Feature
from hudsim.contract.refusal import nearest
from hudsim.errors import ContractError

__all__ = ["Checks"]


class Checks:
    """Checkers for one world's observations and actions; a few microseconds a tick.

    What passes comes back in the contract's dtypes, the very same arrays where nothing had to be cast. What does
    not raises :class:`~hudsim.errors.ContractError` with feature, got and expected.
    """

    def __init__(self, observations: Mapping[str, Feature], action_name: str, action: Feature) -> None:
        for name, feature in {**observations, action_name: action}.items():
            if not feature.complete:
                unknown = "dtype" if feature.shape is not None else "shape"
                hint = "fill the contract from the first observation"
                raise ContractError(name, got=f"no {unknown}", expected="shape and dtype", hint=hint)
        self._observations = [(name, _observation_check(name, feature)) for name, feature in observations.items()]
        self._action = ActionCheck(action_name, action)

    def observation(self, data: Mapping[str, Any]) -> dict[str, Array]:
        """``data`` {feature: [*shape]} of ONE world, no batch axis → the same in the contract's dtypes and order.

        Refused: a feature missing or too many, a wrong shape or dtype kind, a value that does not fit, one that
        is not finite unless the feature says ``finite: false``. Limits of observations are not enforced.
        """
        checked = {}
        for name, check in self._observations:
            try:
                value = data[name]
            except KeyError:
                raise self._wrong_names(data) from None
            except (TypeError, IndexError):
                got = type(data).__name__
                raise ContractError("observation", got=got, expected="a mapping {feature: array}") from None
            checked[name] = check(value)
        if len(checked) != len(data):
            raise self._wrong_names(data)
        return checked

    def action(self, array: Any, *, lenient: bool = False) -> tuple[Array, NDArray[np.bool_] | None]:
        """One action [*shape] → (it in the contract's dtype, which numbers were clipped: bool [*shape] or None).

        ``lenient`` is for peers that have float32 only: for an integer or bool action they may send floats that
        are exactly whole, up to 2^24. The array may be the one given, also when that is read-only.
        """
        return self._action.one(array, lenient=lenient)

    def chunk(self, array: Any, *, lenient: bool = False) -> tuple[Array, NDArray[np.bool_] | None]:
        """A chunk of actions [T, *shape], T ≥ 1 → as :meth:`action`, the mask being [T, *shape]."""
        return self._action.many(array, lenient=lenient)

    def hold(self, last: Array | None) -> Array:
        """What a starved tick does, by the dimension: a new array [*shape]. See :meth:`ActionCheck.hold`."""
        return self._action.hold(last)

    def _wrong_names(self, data: Mapping[str, Any]) -> ContractError:
        names = [name for name, _ in self._observations]
        for name in names:
            if name not in data:
                there = ", ".join(map(str, data)) or "nothing"
                return ContractError(name, got=f"an observation without it (there are: {there})", expected="its array")
        extra = next(str(name) for name in data if name not in names)
        hint = nearest(extra, names) if names else "the contract names no observation"
        return ContractError(extra, got="an array not in the contract", expected="features that are", hint=hint)


def _observation_check(name: str, feature: Feature) -> Callable[[Any], Array]:
    dtype, shape = np.dtype(feature.dtype), feature.shape or ()
    must_be_finite = feature.finite and dtype.kind == "f"

    def check(value: Any) -> Array:
        if type(value) is np.ndarray and value.dtype is dtype and value.shape == shape:
            array = given = value
        else:
            given = as_array(name, value)
            if given.shape == () and shape == (1,):
                given = given.reshape(1)  # a 0-d value is promoted, as HUD's encoding does
            if given.shape != shape:
                raise _wrong_shape(name, feature, given)
            array = cast(name, given, dtype, whole=not isinstance(value, np.ndarray | np.generic))
        if must_be_finite and not all_finite(array):
            at = np.argwhere(~np.isfinite(array))[0]
            names = feature.names if not feature.is_image else None
            got, hint = f"{given[tuple(at)]}{place(at, names)}", "say finite: false if that is meant"
            raise ContractError(name, got=got, expected=f"finite {dtype} numbers", hint=hint)
        return array

    return check


def _wrong_shape(name: str, feature: Feature, given: Array) -> ContractError:
    want, got, hint = feature.shape or (), given.shape, ""
    if feature.is_image and len(want) == 3 and got == (want[2], want[0], want[1]):
        hint = "CHW; images are HWC, transpose it"
    elif feature.is_image and len(want) >= 2 and got == (want[1], want[0], *want[2:]):
        hint = "height and width are swapped"
    elif feature.is_image and len(got) == 3 and len(want) == 3 and got[:2] == want[:2] and got[2] == 4:
        hint = "it has an alpha channel, drop it"
    elif len(got) == len(want) + 1 and got[1:] == want:
        hint = f"a batch or stack of {got[0]}; one world's belongs here"
    expected = f"{feature.dtype}{list(want)}"
    return ContractError(name, got=describe(given), expected=expected, hint=hint)
