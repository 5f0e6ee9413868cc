"""``ModelConformance``: a policy's tests, to be had by naming the policy and a contract."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from hudsim.contract import Contract
from hudsim.robot.adapter import Adapter
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["ModelConformance"]


class ModelConformance:
    """Subclass it, say how the model is made and for which contract, and pytest runs every test below.

    params
        The capability's ``params`` for ``bind``.
    deterministic
        False: the model draws random numbers.
    tolerance
        How far a row may move when others are in the batch; batched arithmetic may round differently.
    """

    params: ClassVar[Mapping[str, Any]] = {}
    deterministic: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-5

    def make_model(self) -> Model:
        """A new model. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__}.make_model")

    def make_contract(self) -> Contract:
        """The contract of a world that the model drives. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__}.make_contract")

    def make_adapter(self, model: Model) -> Adapter:
        """What stands between the contract and the model."""
        return Adapter(privileged=model.needs_privileged)

    def make_observation(self, contract: Contract, seed: int) -> Mapping[str, Array]:
        """An observation {feature: [*shape]} that the model can be asked about."""
        return contract.example(seed)[0]

    def setup_method(self) -> None:
        """Called by pytest before each test."""
        self.contract = self.make_contract()
        self.model = self.make_model()
        self.model.bind(self.contract, self.params)
        self.adapter = self.make_adapter(self.model)
        self.adapter.bind(self.contract, self.params)
        self.adapter.reset()

    def batch(self, *seeds: int) -> dict[str, Any]:
        """One batch of the observations drawn with ``seeds``."""
        ones = [self.adapter.adapt_observation(self.make_observation(self.contract, seed), "do it") for seed in seeds]
        batch: dict[str, Any] = {}
        for name, value in ones[0].items():
            rows = [one[name] for one in ones]
            batch[name] = np.concatenate(rows) if isinstance(value, np.ndarray) else [row[0] for row in rows]
        return batch

    def infer(self, *seeds: int) -> Array:
        """The chunks [N, T, *action shape] for the observations drawn with ``seeds``, in an array of their own."""
        return np.array(self.model.infer(self.batch(*seeds)))

    def test_chunks_have_a_row_for_each_observation(self) -> None:
        shape = list(self.contract.action.shape or ())
        for count in (1, 3):
            got = list(self.infer(*range(count)).shape)
            if got[:1] != [count] or got[2:] != shape or got[1] < 1:
                raise AssertionError(f"infer: got {got}, expected [{count}, T, {', '.join(map(str, shape))}], T >= 1")

    def test_every_action_is_within_the_contract(self) -> None:
        checks = self.contract.compile()
        for seed in range(3):
            data = self.make_observation(self.contract, seed)
            checks.chunk(self.adapter.adapt_chunk(self.infer(seed)[0], data))

    def test_a_row_does_not_depend_on_the_others(self) -> None:
        self._needs_determinism()
        together = self.infer(0, 1)
        for row, seed in enumerate((0, 1)):
            np.testing.assert_allclose(together[row], self.infer(seed)[0], atol=self.tolerance, rtol=self.tolerance)

    def test_it_remembers_nothing(self) -> None:
        self._needs_determinism()
        before = self.infer(0)
        self.infer(1)
        np.testing.assert_array_equal(self.infer(0), before)

    def test_it_leaves_its_observations_alone(self) -> None:
        batch = self.batch(0)
        before = {name: np.array(value) for name, value in batch.items()}
        for value in batch.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.model.infer(batch)
        for name, value in batch.items():
            np.testing.assert_array_equal(np.array(value), before[name])

    def test_it_infers_beside_the_event_loop(self) -> None:
        async def main() -> Array:
            return await self.model.ainfer(self.batch(0))

        if len(asyncio.run(main())) != 1:
            raise AssertionError("ainfer: got another number of chunks than observations")

    def _needs_determinism(self) -> None:
        if not self.deterministic:
            raise unittest.SkipTest("the model draws random numbers")
