from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.adapters.by_name import ByName
from hudsim.contract import Contract
from hudsim.errors import ContractError, UnknownName

_STATE = "observation/state"


def _contract(action_names: list[str] | None = None) -> Contract:
    names = ["shoulder", "elbow", "wrist"]
    action: dict[str, Any] = {"role": "action", "dtype": "float32", "shape": [3], "names": action_names or names}
    state = {"role": "observation", "dtype": "float32", "shape": [3], "names": names}
    pose = {"role": "observation", "dtype": "float32", "shape": [2], "privileged": True}
    features = {_STATE: state, "observation/pose": pose, "action": action}
    return Contract.load({"schema": "hudsim/1", "control_rate": 50, "features": features})


_DATA = {_STATE: np.array([1, 2, 3], np.float32), "observation/pose": np.zeros(2, np.float32)}


def test_the_state_comes_in_the_policys_order_under_its_name_and_the_action_goes_back() -> None:
    adapter = ByName(
        state={_STATE: ["wrist", "shoulder"]}, action=["wrist", "shoulder", "elbow"], rename={_STATE: "state"}
    )
    adapter.bind(_contract(), {})
    batch = adapter.adapt_observation(_DATA, "go")
    assert set(batch) == {"state", "prompt"}
    assert batch["state"].tolist() == [[3, 1]]
    chunk = np.array([[30, 10, 20], [31, 11, 21]], np.float32)
    assert adapter.adapt_chunk(chunk, _DATA).tolist() == [[10, 20, 30], [11, 21, 31]]


def test_what_is_not_mentioned_passes_through() -> None:
    adapter = ByName(privileged=True)
    adapter.bind(_contract(), {})
    batch = adapter.adapt_observation(_DATA, "go")
    assert batch[_STATE].tolist() == [[1, 2, 3]]
    assert batch["observation/pose"].shape == (1, 2)
    chunk = np.zeros((2, 3), np.float32)
    assert adapter.adapt_chunk(chunk, _DATA) is chunk


def test_a_missing_dimension_is_refused_with_the_list_of_those_there_are() -> None:
    with pytest.raises(ContractError, match=r"observation/state: got the names shoulder, elbow, wrist.*also gripper"):
        ByName(state={_STATE: ["elbow", "gripper"]}).bind(_contract(), {})
    with pytest.raises(ContractError, match=r"also wrist"):
        ByName(action=["shoulder", "elbow"]).bind(_contract(), {})
    with pytest.raises(ContractError, match=r"also gripper"):
        ByName(action=["shoulder", "elbow", "wrist", "gripper"]).bind(_contract(), {})
    with pytest.raises(UnknownName, match=r"no observation 'observation/stat'; did you mean 'observation/state'"):
        ByName(state={"observation/stat": ["elbow"]}).bind(_contract(), {})
