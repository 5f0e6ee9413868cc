from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.policies.hold import Hold
from hudsim.testing import ModelConformance


def _contract(action: dict[str, Any]) -> Contract:
    state = {"role": "observation", "dtype": "float32", "shape": [3], "names": ["grip", "a", "a.vel"]}
    features = {"observation/state": state, "action": {"role": "action", **action}}
    return Contract.load({"schema": "hudsim/1", "control_rate": 50, "features": features})


def test_targets_stay_where_the_joints_are_and_the_rest_is_zero() -> None:
    model = Hold(chunk=4)
    names = ["a", "elsewhere", "grip", "push"]
    hold = ["repeat", "repeat", "repeat", "zero"]
    limits = {"min": [-1, 0.5, -1, None], "max": [1, 2, 1, None]}
    model.bind(_contract({"dtype": "float32", "shape": [4], "names": names, "hold": hold, "limits": limits}), {})
    state = np.array([[0.1, 0.2, 9], [0.3, 0.4, 9]], np.float32)
    chunk = model.infer({"observation/state": state, "prompt": ["", ""]})
    assert chunk.shape == (2, 4, 4)
    assert chunk.dtype == np.float32
    assert np.allclose(chunk[:, 3], [[0.2, 0.5, 0.1, 0], [0.4, 0.5, 0.3, 0]])


def test_a_discrete_action_is_held_at_what_its_limits_allow() -> None:
    model = Hold()
    model.bind(_contract({"dtype": "int64", "shape": [], "limits": {"min": 3, "max": 5}}), {})
    assert model.infer({"observation/state": np.zeros((1, 3), np.float32)}).tolist() == [[3]]


def test_a_model_that_is_not_bound_says_so() -> None:
    with pytest.raises(UsageError, match="not bound"):
        Hold().infer({"observation/state": np.zeros((1, 3), np.float32)})


class TestConformance(ModelConformance):
    def make_model(self) -> Hold:
        return Hold(chunk=3)

    def make_contract(self) -> Contract:
        return _contract({"dtype": "float32", "shape": [2], "names": ["a", "grip"], "hold": "repeat"})
