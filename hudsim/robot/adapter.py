"""``Adapter``: between a world's spaces and a policy's."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.robot.bridge import Array

__all__ = ["Adapter"]


class Adapter:
    """Passes everything through; subclass it where the policy's spaces differ from the world's.

    The agent calls ``bind`` once after connecting, ``reset`` at each episode's start, ``adapt_observation``
    before each inference, ``adapt_chunk`` after it, ``adapt_action`` on each action as it is executed.

    privileged
        True passes on the features that a real robot would not have; they are left out otherwise.
    """

    def __init__(self, *, privileged: bool = False) -> None:
        self.privileged = privileged
        self._keys: list[str] = []

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Learn the world. Raise :class:`~hudsim.errors.ContractError` if it lacks what the policy needs."""
        self._keys = [
            name for name, feature in contract.observations.items() if self.privileged or not feature.privileged
        ]

    def reset(self) -> None:
        """Forget the last episode."""

    def adapt_observation(self, data: Mapping[str, Array], prompt: str) -> Any:
        """A batch of one, ``{feature: [1, ...], "prompt": [prompt]}``, from one observation ``{feature: [...]}``."""
        batch: dict[str, Any] = {name: data[name][np.newaxis] for name in self._keys}
        batch["prompt"] = [prompt]
        return batch

    def adapt_chunk(self, chunk: Array, data: Mapping[str, Array]) -> Array:
        """The world's actions [T, *action shape] for the policy's chunk; ``data`` is what it was inferred from."""
        return chunk

    def adapt_action(self, action: Array, data: Mapping[str, Array]) -> Array:
        """A last word on one action [*action shape] before it is sent; ``data`` is the newest observation."""
        return action

    def fork(self) -> Self:
        """This adapter for one more episode at the same time, of any world: a deep copy.

        Override it if something in it is to be shared. Raises :class:`~hudsim.errors.UsageError` if something
        cannot be copied.
        """
        try:
            return copy.deepcopy(self)
        except TypeError as error:
            raise UsageError(
                f"{type(self).__name__} cannot be copied for another episode: {error}; override fork()"
            ) from error
