from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.contract import Contract
from hudsim.errors import ContractError

DERIVED: dict[str, Any] = {
    "control_rate": 15,
    "features": {
        "camera": {"role": "observation", "type": "rgb"},
        "state": {"role": "observation", "names": ["state_0", "state_1"]},
        "action": {"role": "action", "names": ["act_0", "act_1", "act_2"]},
    },
}

AUTHORED: dict[str, Any] = {
    "robot_type": "franka",
    "robot_class": "arm7g1",
    "control_rate": 10,
    "comment": "OPEN: gains",
    "features": {
        "observation.images.front": {
            "role": "observation",
            "type": "rgb",
            "dtype": "uint8",
            "state_representation": "HWC",
            "shape": [32, 32, 3],
            "names": ["height", "width", "channel"],
            "stats": {"min": [[[0]]], "max": [[[255]]]},
        },
        "observation.text": {"role": "observation", "type": "language", "dtype": "string"},
        "observation.state.eef": {
            "role": "observation",
            "state_type": "EE_ABS_POS",
            "state_representation": "XYZ",
            "frame": "base",
            "dtype": "float32",
            "units": "m",
            "shape": [3],
            "order": "0-2",
            "names": ["x", "y", "z"],
        },
        "action.gripper": {
            "role": "action",
            "state_type": "GRIPPER_ABS_POS",
            "dtype": "float32",
            "shape": [1],
            "order": "3",
            "names": ["grip"],
        },
        "action.delta": {
            "role": "action",
            "state_type": "EE_DEL_POS",
            "dtype": "float32",
            "units": "m",
            "kp": 150.0,
            "shape": [3],
            "order": "0-2",
            "names": ["dx", "dy", "dz"],
            "limits": {"min": [-1.0, -1.0, -1.0], "max": [1.0, 1.0, 1.0]},
        },
    },
}


def test_a_derived_document_is_filled_from_the_first_observation() -> None:
    loaded = Contract.load(DERIVED)
    with pytest.raises(ContractError, match="no shape"):
        loaded.compile()
    observation = {"camera": np.zeros((48, 64, 3), np.uint8), "state": np.zeros(2)}
    filled = loaded.filled(observation)
    assert filled.features["camera"].shape == (48, 64, 3)
    assert filled.features["camera"].dtype == "uint8"
    assert filled.features["state"].shape == (2,)
    assert filled.features["state"].dtype == "float64"
    assert filled.action.shape == (3,)
    assert filled.action.dtype == "float32"
    assert filled.control_rate == 15
    filled.compile().observation(observation)
    assert Contract.load(filled.to_json()) == filled


def test_unknown_keys_are_kept() -> None:
    loaded = Contract.load(AUTHORED)
    assert loaded.extra["robot_class"] == "arm7g1"
    assert loaded.extra["comment"] == "OPEN: gains"
    assert loaded.features["observation.state.eef"].extra == {"order": "0-2"}
    assert loaded.features["observation.state.eef"].unit == ["m"]
    assert loaded.features["observation.images.front"].names is None
    again = Contract.load(loaded.to_json())
    assert again == loaded


@pytest.mark.parametrize(("key", "meant"), [("limit", "limits"), ("out_of_rnge", "out_of_range"), ("dtpye", "dtype")])
def test_a_slip_of_the_pen_is_not_taken_for_an_unknown_key(key: str, meant: str) -> None:
    with pytest.raises(ContractError, match=f"'{key}'.*did you mean '{meant}'") as refused:
        Contract.load({"features": {"action": {"shape": [2], key: 1}}})
    assert refused.value.feature == "action"
    with pytest.raises(ContractError, match="did you mean 'control_rate'"):
        Contract.load({"control_rates": 5, "features": {"action": {"shape": [2]}}})


def test_text_is_no_array() -> None:
    loaded = Contract.load(AUTHORED)
    assert "observation.text" not in loaded.features
    assert loaded.extra["text_features"] == {"observation.text": AUTHORED["features"]["observation.text"]}


def test_parts_of_an_action_are_joined_in_their_order() -> None:
    action = Contract.load(AUTHORED).action
    assert action.shape == (4,)
    assert action.names == ["dx", "dy", "dz", "grip"]
    assert action.hold == ["zero", "zero", "zero", "repeat"]
    assert action.unit == ["m", "m", "m", ""]
    assert action.limits is not None
    assert action.limits.max == [1.0, 1.0, 1.0, None]
    checks = Contract.load(AUTHORED).compile()
    assert checks.action([1, 1, 1, 7])[1] is None


@pytest.mark.parametrize(("order", "words"), [(None, "without order"), ("4", "starts at 3")])
def test_parts_without_a_place_are_refused(order: str | None, words: str) -> None:
    gripper = {**AUTHORED["features"]["action.gripper"], "order": order}
    with pytest.raises(ContractError, match=words) as refused:
        Contract.load({**AUTHORED, "features": {**AUTHORED["features"], "action.gripper": gripper}})
    assert refused.value.feature == "action.gripper"


@pytest.mark.parametrize(("key", "value"), [("dtype", "float64"), ("out_of_range", "clip")])
def test_parts_that_differ_where_a_vector_cannot_are_refused(key: str, value: str) -> None:
    gripper = {**AUTHORED["features"]["action.gripper"], key: value}
    with pytest.raises(ContractError, match=f"one {key}"):
        Contract.load({**AUTHORED, "features": {**AUTHORED["features"], "action.gripper": gripper}})


def test_a_role_not_said_is_read_off_the_name() -> None:
    loaded = Contract.load({"fps": 12.5, "features": {"action.arm": {"shape": [2]}, "observation.state": {}}})
    assert loaded.action_name == "action.arm"
    assert list(loaded.observations) == ["observation.state"]
    assert loaded.control_rate == 12.5


@pytest.mark.parametrize("limits", [[-1, 1], [[-1, 1], [-1, 1], [None, 1]]])
def test_limits_may_be_pairs(limits: list[Any]) -> None:
    loaded = Contract.load({"features": {"action": {"shape": [3], "limits": limits}}})
    with pytest.raises(ContractError, match="out_of_range"):
        loaded.compile().action(np.array([0, 1.5, 0], np.float32))


@pytest.mark.parametrize("limits", [[[-1, 1], [-1, 1]], [[1, 2], [3]], [1], [], [[1, 2], 3, 4]])
def test_limits_that_could_be_meant_either_way_are_refused(limits: list[Any]) -> None:
    with pytest.raises(ContractError, match="say"):
        Contract.load({"features": {"action": {"shape": [2], "limits": limits}}})


def test_an_image_laid_out_chw_is_refused() -> None:
    camera = {"type": "rgb", "shape": [3, 64, 64], "state_representation": "CHW"}
    with pytest.raises(ContractError, match="CHW") as refused:
        Contract.load({"features": {"camera": camera, "action": {"shape": [2]}}})
    assert refused.value.feature == "camera"


def test_a_document_without_action_is_refused() -> None:
    with pytest.raises(ContractError, match="exactly one feature of role 'action'"):
        Contract.load({})


def test_a_document_without_observations_takes_over_what_is_shown() -> None:
    shown = {"image": np.zeros((32, 32, 3), np.uint8), "qpos": np.zeros(2, np.float32)}
    filled = Contract.load({"features": {"action": {"shape": [2]}}}).filled(shown, control_rate=20)
    assert list(filled.observations) == ["image", "qpos"]
    assert filled.features["image"].type == "rgb"
    assert filled.features["qpos"].type is None
    assert filled.control_rate == 20


def test_a_scalar_with_one_name_is_a_vector_of_one() -> None:
    filled = Contract.load({"features": {"t": {"names": ["t"]}, "action": {"shape": [1]}}}).filled({"t": np.float32(3)})
    assert filled.features["t"].shape == (1,)
    assert filled.compile().observation({"t": np.float32(3)})["t"].tolist() == [3.0]


def test_what_is_said_stays_when_filled() -> None:
    loaded = Contract.load({"control_rate": 10, "features": {"s": {"dtype": "float32"}, "action": {"shape": [1]}}})
    filled = loaded.filled({"s": np.zeros(3)}, control_rate=99)
    assert filled.control_rate == 10
    assert filled.features["s"].dtype == "float32"
