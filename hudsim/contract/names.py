"""``Binding``: the same dimensions in another order, found by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hudsim.contract.arrays import Array
from hudsim.contract.refusal import nearest
from hudsim.errors import ContractError

__all__ = ["Binding"]


class Binding:
    """Reads ``wanted`` dimensions out of the ``there`` ones, and puts them back.

    ``there`` are the names of the world's last axis (length D), ``wanted`` those that the policy knows
    (length d), in its order. Raises :class:`~hudsim.errors.ContractError` for a wanted name that is not there
    (the message lists those there are) and for a name given twice.
    """

    def __init__(self, *, there: Sequence[str], wanted: Sequence[str], feature: str) -> None:
        self.there, self.wanted, self.feature = tuple(there), tuple(wanted), feature
        for side in (self.there, self.wanted):
            if len(set(side)) < len(side):
                twice = sorted({name for name in side if side.count(name) > 1})
                raise ContractError(feature, got=f"names twice: {', '.join(twice)}", expected="each name once")
        missing = [name for name in self.wanted if name not in self.there]
        if missing:
            raise ContractError(
                feature,
                got=f"the names {', '.join(self.there) or '(none)'}",
                expected=f"also {', '.join(missing)}",
                hint=nearest(missing[0], self.there) if self.there else "the world names no dimensions",
            )
        self._from_there = np.array([self.there.index(name) for name in self.wanted], dtype=np.intp)
        self._same = self.there == self.wanted

    @property
    def covers(self) -> bool:
        """Whether every dimension there is wanted, so that :meth:`scatter` works."""
        return len(self.there) == len(self.wanted)

    def select(self, array: Array) -> Array:
        """[..., D] in the order there → [..., d] in the order wanted. The same array if the orders agree."""
        self._expect(array, len(self.there))
        return array if self._same else array[..., self._from_there]

    def scatter(self, array: Array) -> Array:
        """[..., d] in the order wanted → [..., D] in the order there. The same array if the orders agree.

        Raises :class:`~hudsim.errors.ContractError` if a dimension there is not among the wanted: nothing would
        be known to put in it.
        """
        self._expect(array, len(self.wanted))
        if self._same:
            return array
        if not self.covers:
            left = [name for name in self.there if name not in self.wanted]
            raise ContractError(self.feature, got=f"no value for {', '.join(left)}", expected="every dimension named")
        out = np.empty_like(array)
        out[..., self._from_there] = array
        return out

    def _expect(self, array: Array, width: int) -> None:
        if array.ndim == 0 or array.shape[-1] != width:
            raise ContractError(self.feature, got=f"shape {list(array.shape)}", expected=f"[..., {width}]")
