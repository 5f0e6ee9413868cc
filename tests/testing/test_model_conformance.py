"""The project's own policies through the kit that users have for theirs, and what the kit finds in bad ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from hudsim.bridges.arm import ArmBridge
from hudsim.bridges.testcard import TestCardBridge
from hudsim.contract import Contract
from hudsim.policies.hold import Hold
from hudsim.policies.random_actions import RandomActions
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model
from hudsim.testing import ModelConformance


def card() -> Contract:
    return Contract.load(TestCardBridge(width=16, height=16, cameras=1, limit=1.0).contract)


class TestHold(ModelConformance):
    def make_model(self) -> Model:
        return Hold(chunk=4)

    def make_contract(self) -> Contract:
        return Contract.load(ArmBridge(cameras=False).contract)


class TestRandomActions(ModelConformance):
    deterministic: ClassVar[bool] = False

    def make_model(self) -> Model:
        return RandomActions(chunk=3)

    def make_contract(self) -> Contract:
        return card()


class Linear(Model):
    """Ten rows of a linear function of the state: what the kit expects of a policy."""

    def infer(self, batch: Any) -> Array:
        state = batch["observation/state"]
        return np.repeat(np.tanh(state[:, np.newaxis, -5:]), 10, axis=1)


class TestLinear(ModelConformance):
    def make_model(self) -> Model:
        return Linear()

    def make_contract(self) -> Contract:
        return card()


class NoBatch(Linear):
    def infer(self, batch: Any) -> Array:
        chunk: Array = super().infer(batch)[0]
        return chunk


class TooFar(Linear):
    def infer(self, batch: Any) -> Array:
        return super().infer(batch) + 5


class Remembers(Linear):
    calls = 0

    def infer(self, batch: Any) -> Array:
        self.calls += 1
        return super().infer(batch) * np.float32(0.9**self.calls)


class Mixes(Linear):
    def infer(self, batch: Any) -> Array:
        chunk = super().infer(batch)
        mixed: Array = chunk - chunk.mean(axis=0, keepdims=True) / 2
        return mixed


class Scribbles(Linear):
    def infer(self, batch: Any) -> Array:
        batch["observation/state"] += 1
        return super().infer(batch)


@pytest.mark.parametrize(
    ("model", "test", "words"),
    [
        (NoBatch, "test_chunks_have_a_row_for_each_observation", "expected"),
        (TooFar, "test_every_action_is_within_the_contract", "out_of_range"),
        (Remembers, "test_it_remembers_nothing", "not equal"),
        (Mixes, "test_a_row_does_not_depend_on_the_others", "Not equal"),
        (Scribbles, "test_it_leaves_its_observations_alone", "read-only"),
    ],
)
def test_a_model_that_is_wrong_is_found_out(model: Callable[[], Model], test: str, words: str) -> None:
    class Suite(ModelConformance):
        def make_model(self) -> Model:
            return model()

        def make_contract(self) -> Contract:
            return card()

    suite = Suite()
    suite.setup_method()
    with pytest.raises(Exception, match=f"(?i){words}"):
        getattr(suite, test)()
