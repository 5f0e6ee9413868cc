from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.contract import Contract
from hudsim.policies.random_actions import RandomActions
from hudsim.testing import ModelConformance


def _contract(action: dict[str, Any]) -> Contract:
    state = {"role": "observation", "dtype": "float32", "shape": [2]}
    features = {"observation/state": state, "action": {"role": "action", **action}}
    return Contract.load({"schema": "hudsim/1", "control_rate": 50, "features": features})


def _bound(action: dict[str, Any], **options: Any) -> tuple[RandomActions, Any]:
    contract = _contract(action)
    model = RandomActions(**options)
    model.bind(contract, {})
    return model, contract.compile()


def _batch(*values: float) -> dict[str, Any]:
    return {"observation/state": np.array([[value, 0] for value in values], np.float32), "prompt": [""] * len(values)}


@pytest.mark.parametrize(
    "action",
    [
        {"dtype": "float32", "shape": [3], "limits": {"min": [-1, None, 2], "max": [2.8973, None, None]}},
        {"dtype": "float32", "shape": [2]},
        {"dtype": "float64", "shape": [2, 2], "limits": {"min": 5, "max": 5}},
        {"dtype": "int64", "shape": [], "limits": {"min": -1, "max": 1}},
        {"dtype": "int64", "shape": [2], "limits": {"min": [3, -(1 << 62)], "max": [4, 1 << 62]}},
        {"dtype": "int8", "shape": [4], "limits": {"min": 0, "max": 1}},
        {"dtype": "int64", "shape": []},
        {"dtype": "bool", "shape": [2]},
    ],
)
def test_whatever_is_drawn_is_allowed(action: dict[str, Any]) -> None:
    model, checks = _bound(action, chunk=50)
    for chunk in model.infer(_batch(0.1, 0.2, 0.3)):
        checked, clipped = checks.chunk(chunk)
        assert clipped is None
        assert checked.shape == (50, *action["shape"])


def test_every_value_of_a_discrete_action_comes_up() -> None:
    model, _ = _bound({"dtype": "int64", "shape": [], "limits": {"min": -1, "max": 2}}, chunk=200)
    assert set(model.infer(_batch(0.5))[0].tolist()) == {-1, 0, 1, 2}


def test_the_same_seed_and_observation_give_the_same_action_in_any_batch() -> None:
    action = {"dtype": "float32", "shape": [3], "limits": {"min": -1, "max": 1}}
    model, _ = _bound(action, seed=4)
    alone = model.infer(_batch(0.5))[0]
    with_others = model.infer({**_batch(0.1, 0.5), "unexecuted_chunk": np.ones((2, 3, 3)), "delay": 2})
    assert np.array_equal(alone, with_others[1])
    assert not np.array_equal(with_others[0], with_others[1])
    assert not np.array_equal(alone, _bound(action, seed=5)[0].infer(_batch(0.5))[0])


class TestConformance(ModelConformance):
    def make_model(self) -> RandomActions:
        return RandomActions(chunk=3)

    def make_contract(self) -> Contract:
        return _contract({"dtype": "int64", "shape": [2], "limits": {"min": [0, -3], "max": [1, 3]}})
