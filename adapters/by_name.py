"""``ByName``: a policy's dimensions found in the world's by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudsim.contract import Binding, Contract
from hudsim.errors import UnknownName
from hudsim.robot.adapter import Adapter
from hudsim.robot.bridge import Array

__all__ = ["ByName"]


class ByName(Adapter):
    """Gives the policy its state in its own order, and puts its actions into the world's.

    state
        ``{feature: [names]}``: the dimensions, by name and in the policy's order, of each such observation.
        A feature that is not mentioned passes through.
    action
        The action's dimensions in the policy's order; every one of the world's must be among them. None: as it is.
    rename
        ``{the world's feature: the policy's}``, applied last.

    ``bind`` raises :class:`~hudsim.errors.ContractError` for a dimension that the world has not, with the list of
    those it has, and :class:`~hudsim.errors.UnknownName` for such a feature.
    """

    def __init__(
        self,
        *,
        state: Mapping[str, Sequence[str]] | None = None,
        action: Sequence[str] | None = None,
        rename: Mapping[str, str] | None = None,
        privileged: bool = False,
    ) -> None:
        super().__init__(privileged=privileged)
        self._wanted = {name: list(names) for name, names in (state or {}).items()}
        self._action_wanted = None if action is None else list(action)
        self._rename = dict(rename or {})
        self._state: dict[str, Binding] = {}
        self._action: Binding | None = None

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        super().bind(contract, params)
        for name in (*self._wanted, *self._rename):
            if name not in self._keys:
                raise UnknownName("observation", name, self._keys)
        self._state = {
            name: Binding(there=contract.observations[name].names or (), wanted=wanted, feature=name)
            for name, wanted in self._wanted.items()
        }
        self._action = None
        if self._action_wanted is not None:
            there = contract.action.names or ()
            # Both ways round: a name that the policy lacks is as bad as one that the world lacks.
            Binding(there=self._action_wanted, wanted=there, feature="the policy's action")
            self._action = Binding(there=there, wanted=self._action_wanted, feature=contract.action_name)

    def adapt_observation(self, data: Mapping[str, Array], prompt: str) -> dict[str, Any]:
        own = {name: self._state[name].select(array) if name in self._state else array for name, array in data.items()}
        batch: dict[str, Any] = super().adapt_observation(own, prompt)
        return {self._rename.get(name, name): value for name, value in batch.items()}

    def adapt_chunk(self, chunk: Array, data: Mapping[str, Array]) -> Array:
        return chunk if self._action is None else self._action.scatter(chunk)
