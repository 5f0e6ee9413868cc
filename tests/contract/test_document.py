from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hudsim.contract import RESERVED_NAMES, Contract, Feature, Limits, Timing
from hudsim.errors import ContractError
from tests.contract.documents import ARM, JOINTS, arm


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    doc = copy.deepcopy(ARM)
    at = doc
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return doc


def test_a_document_loads_from_a_mapping_text_and_file_alike(tmp_path: Path) -> None:
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(ARM))
    loaded = Contract.load(ARM)
    assert Contract.load(json.dumps(ARM)) == loaded
    assert Contract.load(file) == loaded
    assert Contract.load(loaded) is loaded


def test_to_json_gives_the_same_contract_back() -> None:
    loaded = Contract.load(ARM)
    doc = json.loads(json.dumps(loaded.to_json()))
    assert doc["schema"] == "hudsim/1"
    assert Contract.load(doc) == loaded
    assert doc["features"]["action"]["limits"]["min"][:2] == [-2.8973, None]
    assert list(doc["features"]) == list(ARM["features"])


def test_observations_and_action_are_told_apart_in_order() -> None:
    loaded = Contract.load(ARM)
    assert list(loaded.observations) == [name for name in ARM["features"] if name != "action"]
    assert loaded.action_name == "action"
    assert loaded.action.names == JOINTS
    assert loaded.observations["observation/scene"].is_image
    assert loaded.observations["observation/cube"].privileged


@pytest.mark.parametrize("rate", [12.5, 50, 0.1])
def test_a_control_rate_stays_what_it_is(rate: float) -> None:
    assert Contract.load(changed(("control_rate",), rate)).to_json()["control_rate"] == rate


def test_a_word_for_all_dimensions_is_spread() -> None:
    assert Contract.load(arm(hold="zero")).action.hold == ["zero"] * 8
    assert Contract.load(arm(unit="rad")).action.unit == ["rad"]


@pytest.mark.parametrize(
    ("state_type", "names", "hold"),
    [
        ("JOINT_ABS_POS", ["a", "b"], ["repeat", "repeat"]),
        ("EE_DEL_POSE", ["dx", "gripper"], ["zero", "repeat"]),
        ("EE_ABS_TWIST", ["vx", "wz"], ["zero", "zero"]),
        ("JOINT_ABS_EFF", ["a", "b"], ["zero", "zero"]),
        ("GRIPPER_ABS_POS", ["l", "r"], ["repeat", "repeat"]),
        (None, ["a", "b"], ["repeat", "repeat"]),
    ],
)
def test_hold_not_said_follows_from_the_state_type(state_type: str | None, names: list[str], hold: list[str]) -> None:
    assert Feature(role="action", shape=(2,), names=names, state_type=state_type).hold == hold


@pytest.mark.parametrize(
    ("path", "value", "feature", "words"),
    [
        (("schema",), "hudsim/2", "schema", ["hudsim/2", "hudsim/1"]),
        (("robottype",), "x", "robottype", ["unknown key", "did you mean 'robot_type'"]),
        (("control_rate",), 0, "control_rate", ["greater than 0"]),
        (("control_rate",), float("inf"), "control_rate", ["finite"]),
        (("timing", "mode"), "real", "timing.mode", ["'real'", "realtime"]),
        (("timing", "deadline"), 1, "timing.deadline", ["unknown key"]),
        (("timing", "warmup_s"), -1, "timing.warmup_s", ["greater than 0"]),
        (("success", "rule"), "first", "success.rule", ["'any' or 'last'"]),
        (("features", "action", "limit"), {}, "action", ["'limit'", "did you mean 'limits'"]),
        (("features", "action", "limits", "mn"), 0, "action", ["did you mean 'min'"]),
        (("features", "action", "limits", "min"), ["x"], "action", ["limits.min", "'x'", "a number"]),
        (("features", "action", "limits", "min"), float("nan"), "action", ["nan", "a number"]),
        (("features", "action", "limits", "min"), [0, 1, 2], "action", ["[3]", "[8]"]),
        (("features", "action", "limits", "min"), 5, "action", ["min 5.0 > max 2.89", "at [0]"]),
        (("features", "action", "shape"), [7], "action", ["8 names", "7"]),
        (("features", "action", "shape"), [-1], "action", ["greater than or equal to 0"]),
        (("features", "observation/cube", "shape"), [2**20, 2**20], "observation/cube", ["at most"]),
        (("features", "action", "unit"), ["rad", "m"], "action", ["2 unit", "8"]),
        (("features", "action", "hold"), ["repeat"] * 3, "action", ["3 hold", "8"]),
        (("features", "action", "hold"), ["keep"], "action", ["'repeat' or 'zero'"]),
        (("features", "action", "names"), ["a"] * 8, "action", ["twice: a"]),
        (("features", "action", "dtype"), "flaot32", "action", ["did you mean 'float32'"]),
        (("features", "action", "dtype"), "object", "action", ["'object'", "carried"]),
        (("features", "action", "dtype"), "int8", "action", ["2.8973 for int8", "whole"]),
        (("features", "action", "role"), "observation", "contract", ["no action feature", "exactly one"]),
        (("features", "action", "finite"), False, "action", ["finite"]),
        (("features", "observation/state", "role"), "action", "contract", ["2 action features", "exactly one"]),
        (("features", "observation/scene", "shape"), [3, 24, 32], "observation/scene", ["CHW", "HWC"]),
        (("features", "observation/scene", "shape"), [24, 32, 4], "observation/scene", ["[height, width, 3]"]),
        (("features", "observation/scene", "shape"), [4, 24, 32, 3], "observation/scene", ["stack"]),
        (("features", "observation/scene", "dtype"), "int64", "observation/scene", ["int64", "unsigned"]),
        (("features", "observation/depth", "shape"), [24, 32, 3], "observation/depth", ["[height, width, 1]"]),
        (("features", "observation/state", "stats"), {"mean": {1}}, "observation/state", ["stats"]),
    ],
)
def test_a_contradiction_is_refused_by_name(path: tuple[str, ...], value: Any, feature: str, words: list[str]) -> None:
    with pytest.raises(ContractError) as refused:
        Contract.load(changed(path, value))
    assert refused.value.feature == feature
    for word in words:
        assert word in refused.value.message


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_the_wires_own_names_are_no_features(name: str) -> None:
    with pytest.raises(ContractError, match="the wire's own are") as refused:
        Contract.load(changed(("features", name), {"role": "observation"}))
    assert refused.value.feature == name


@pytest.mark.parametrize("doc", ["no json", "[1, 2]", Path("/no/such/file.json"), 3])
def test_what_is_no_document_is_refused(doc: Any) -> None:
    with pytest.raises(ContractError):
        Contract.load(doc)


def test_constructors_raise_contract_errors_too() -> None:
    with pytest.raises(ContractError, match="'observation' or 'action'"):
        Feature(role="nothing")  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="no bound"):
        Limits(min="low")
    with pytest.raises(ContractError, match="greater than 0"):
        Timing(warmup_s=0)


def test_a_limit_of_infinity_is_no_limit() -> None:
    limits = Contract.load(arm(limits={"min": -1, "max": [float("inf")] * 8})).action.limits
    assert limits == Limits(min=-1, max=[None] * 8)


def test_the_json_schema_names_every_key() -> None:
    schema = Contract.json_schema()
    assert set(schema["properties"]) >= set(ARM)
    assert schema["required"] == ["schema", "features"]
    assert schema["additionalProperties"] is False
    assert set(schema["$defs"]["Feature"]["properties"]) == set(Feature.model_fields)
    json.dumps(schema)
