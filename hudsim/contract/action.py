"""``ActionCheck``: what the world is commanded, against the contract, every tick."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudsim.contract.arrays import Array, all_finite, as_array, cast, describe, place
from hudsim.contract.bounds import bounds
from hudsim.contract.feature import Feature
from hudsim.errors import ContractError

__all__ = ["ActionCheck"]

Mask = NDArray[np.bool_]


class ActionCheck:
    """Checks actions of one feature: shape, dtype kind, finiteness, limits; and says what a starved tick does."""

    def __init__(self, name: str, feature: Feature) -> None:
        self.name, self.feature = name, feature
        self.shape: tuple[int, ...] = feature.shape or ()
        self.dtype = np.dtype(feature.dtype)
        self._float = self.dtype.kind == "f"
        self._clip = feature.out_of_range == "clip"
        self._limited = feature.limits is not None
        self._names = feature.names if self.shape else None  # those of a 0-d value's one entry say no place
        limits = feature.limits
        if self.dtype.kind == "b":
            self._low, self._high = np.zeros(self.shape, bool), np.ones(self.shape, bool)
        else:
            low, high = (limits.min, limits.max) if limits is not None else (None, None)
            self._low, self._high = bounds(low, high, self.shape, self.dtype)
        self._rest = np.asarray(np.clip(np.zeros(self.shape, self.dtype), self._low, self._high))
        repeats = np.array([word == "repeat" for word in feature.hold or ["repeat"]])
        self._repeats = None if repeats.all() else repeats if self.shape else repeats[0]

    def one(self, value: Any, *, lenient: bool = False) -> tuple[Array, Mask | None]:
        """One action [*shape] and which numbers of it were clipped (None: none)."""
        if type(value) is np.ndarray and value.dtype is self.dtype and value.shape == self.shape:
            return self._settled(value, value)
        given = as_array(self.name, value)
        if given.shape != self.shape:
            raise self._wrong_shape(given)
        return self._settled(self._cast(given, lenient), given)

    def many(self, value: Any, *, lenient: bool = False) -> tuple[Array, Mask | None]:
        """A chunk [T, *shape], T at least 1, and which numbers of it were clipped (None: none)."""
        given = value if type(value) is np.ndarray else as_array(self.name, value)
        if given.shape[1:] != self.shape or given.ndim == 0 or given.shape[0] == 0:
            raise self._wrong_chunk(given)
        array = given if given.dtype is self.dtype else self._cast(as_array(self.name, given), lenient)
        return self._settled(array, given)

    def hold(self, last: Array | None) -> Array:
        """The action [*shape] of a tick that got none; ``last`` is the last one executed, None if there was none.

        By the feature's ``hold``: the last value or zero, zero brought within the limits where they exclude it.
        Before any action it is that zero for every dimension.
        """
        if last is None:
            return self._rest.copy()
        if self._repeats is None:
            return last.copy()
        return np.where(self._repeats, last, self._rest)

    def _cast(self, given: Array, lenient: bool) -> Array:
        if given.dtype.kind == "f" and not all_finite(given):
            raise self._not_finite(given)
        return cast(self.name, given, self.dtype, whole=True, lenient=lenient)

    def _settled(self, array: Array, given: Array) -> tuple[Array, Mask | None]:
        """``array`` is ``given`` in the feature's dtype; both are finite, but the cast may have overflowed."""
        if not self._limited:
            if self._float and not all_finite(array):
                raise self._not_finite(given)
            return array, None
        inside = np.minimum(np.maximum(array, self._low), self._high)
        # Comparing bytes is 4x faster than all(==) on a few numbers. What differs is looked at again: -0.0 does.
        if inside.tobytes() != array.tobytes():
            outside = np.asarray(array != inside)
            if self._float:
                outside &= ~np.isnan(array)
            if outside.any():
                return self._clipped(array, given, np.asarray(inside), outside)
        if self._float and not all_finite(array):
            raise self._not_finite(given)
        return array, None

    def _clipped(self, array: Array, given: Array, inside: Array, outside: Mask) -> tuple[Array, Mask]:
        # An infinity that was sent is refused whatever the limits; one that the cast made of 1e300 is clipped.
        if self._float and not (all_finite(given) and (all_finite(inside) or not self._clip)):
            raise self._not_finite(given)
        if self._clip:
            return inside, outside
        at = np.argwhere(outside)[0]
        index = tuple(at)
        own = index[array.ndim - len(self.shape) :]
        more = int(outside.sum()) - 1
        got = f"{given[index]}{place(at, self._names)}" + (f" and {more} more outside" if more else "")
        expected = f"a value in [{self._low[own]}, {self._high[own]}]"
        raise ContractError(self.name, got=got, expected=expected, hint="out_of_range: reject")

    def _not_finite(self, given: Array) -> ContractError:
        bad = ~np.isfinite(given)
        if not bad.any():  # then it was the cast that overflowed
            with np.errstate(over="ignore"):
                bad = ~np.isfinite(given.astype(self.dtype))
        at = np.argwhere(bad)[0]
        return ContractError(
            self.name,
            got=f"{given[tuple(at)]}{place(at, self._names)}",
            expected=f"finite numbers that fit {self.dtype}",
        )

    def _expected(self, lead: str = "") -> str:
        return f"{self.dtype}[{lead}{', '.join(map(str, self.shape))}]"

    def _wrong_shape(self, given: Array) -> ContractError:
        hint = ""
        if given.ndim == len(self.shape) + 1 and given.shape[1:] == self.shape:
            hint = f"that is a chunk of {given.shape[0]}, one action belongs here"
        elif given.size == int(np.prod(self.shape)):
            hint = "as many numbers, in another shape"
        return ContractError(self.name, got=describe(given), expected=self._expected(), hint=hint)

    def _wrong_chunk(self, given: Array) -> ContractError:
        hint = ""
        if given.shape == self.shape:
            hint = "that is one action, a chunk has a leading axis T"
        elif given.ndim == len(self.shape) + 2 and given.shape[2:] == self.shape:
            hint = "that has a batch axis too, a chunk is one world's"
        elif given.ndim == len(self.shape) + 1 and given.shape[0] == 0:
            hint = "a chunk holds at least one action"
        lead = "T, " if self.shape else "T"
        return ContractError(self.name, got=describe(given), expected=self._expected(lead), hint=hint)
