"""How a camera crosses a link that is not local, as a contract says it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hudsim.contract import Contract
from hudsim.errors import ContractError, UnknownName, UsageError
from tests.contract.documents import contract

RGB: dict[str, Any] = {"type": "rgb", "dtype": "uint8", "shape": [24, 32, 3]}


def cameras(**features: dict[str, Any]) -> Contract:
    return contract({"shape": [2]}, **{name.replace("_", "/"): feature for name, feature in features.items()})


@pytest.mark.parametrize(
    ("said", "means", "told"),
    [
        (None, "raw", None),
        ("raw", "raw", None),
        ("jpeg", "jpeg:90", "jpeg:90"),
        ("jpeg:1", "jpeg:1", "jpeg:1"),
        ("jpeg:100", "jpeg:100", "jpeg:100"),
    ],
)
def test_an_encoding_is_one_word(said: str | None, means: str, told: str | None) -> None:
    made = cameras(scene={**RGB, **({} if said is None else {"encoding": said})})
    assert made.observations["scene"].encoding == means
    assert made.to_json()["features"]["scene"].get("encoding") == told
    assert Contract.load(made.to_json()) == made


@pytest.mark.parametrize("said", ["jpg", "jpeg:0", "jpeg:101", "jpeg:", "jpeg:9.5", "JPEG", "", 90, {"jpeg": 90}, True])
def test_another_word_is_refused_and_told_which_there_are(said: Any) -> None:
    with pytest.raises(ContractError, match=r"scene: got encoding .*, expected 'raw', 'jpeg', or 'jpeg:QUALITY'"):
        cameras(scene={**RGB, "encoding": said})


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ({"type": "depth", "dtype": "float32", "shape": [4, 4]}, "type depth"),
        ({"dtype": "uint8", "shape": [24, 32, 3]}, "without a type"),
        ({"type": "rgb", "dtype": "float32", "shape": [4, 4, 3]}, "float32"),
        ({"type": "gray", "dtype": "uint16", "shape": [4, 4, 1]}, "uint16"),
        ({"type": "rgb", "dtype": "uint8", "shape": [0, 4, 3]}, r"\[0, 4, 3\]"),
        ({"type": "rgb", "dtype": "uint8", "shape": [70000, 4, 3]}, "65500"),
    ],
)
def test_what_is_no_picture_of_bytes_cannot_be_encoded(feature: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        cameras(scene={**feature, "encoding": "jpeg"})


def test_an_action_cannot_be_encoded() -> None:
    with pytest.raises(ContractError, match="without a type"):
        contract({"shape": [2], "encoding": "jpeg"}, scene=RGB)


def test_a_camera_whose_shape_is_not_known_yet_keeps_its_encoding_when_it_is() -> None:
    loaded = Contract.load(
        {"robot_type": "x", "features": {"scene": {"encoding": "jpeg:60"}, "action": {"shape": [2], "role": "action"}}}
    )
    example, _ = cameras(scene=RGB).example()
    filled = loaded.filled(example, 20.0)
    assert (filled.observations["scene"].type, filled.observations["scene"].encoding) == ("rgb", "jpeg:60")
    with pytest.raises(ContractError, match="without a type"):
        loaded.filled({"scene": example["scene"].astype("float32")}, 20.0)


def test_cameras_are_asked_for_by_name_by_the_last_part_of_it_or_all() -> None:
    made = cameras(left_scene=RGB, wrist=RGB, depth={"type": "depth", "dtype": "float32", "shape": [4, 4]})

    def encodings(asked: dict[str, str]) -> list[str]:
        return [feature.encoding for feature in made.encoded(asked).observations.values()]

    assert encodings({}) == ["raw", "raw", "raw"]
    assert encodings({"scene": "jpeg:75"}) == ["jpeg:75", "raw", "raw"]
    assert encodings({"left/scene": "jpeg", "wrist": "jpeg:5"}) == ["jpeg:90", "jpeg:5", "raw"]
    assert encodings({"*": "jpeg", "wrist": "raw"}) == ["jpeg:90", "raw", "raw"]
    assert made.encoded({"scene": "jpeg:75"}).diff(made) == ["left/scene: encoding jpeg:75 here, not given there"]


def test_asking_for_what_is_no_camera_lists_those_there_are() -> None:
    made = cameras(left_scene=RGB, right_scene=RGB, depth={"type": "depth", "dtype": "float32", "shape": [4, 4]})
    for asked in ("depth", "scen", "action"):
        with pytest.raises(UnknownName, match="There are: left/scene, right/scene"):
            made.encoded({asked: "jpeg"})
    with pytest.raises(UsageError, match="left/scene, right/scene end in"):
        made.encoded({"scene": "jpeg"})
    with pytest.raises(ContractError, match="left/scene: got encoding 'png'"):
        made.encoded({"*": "png"})
    with pytest.raises(UnknownName, match="There are none"):
        contract({"shape": [2]}).encoded({"*": "jpeg"})


def test_the_schema_says_which_encodings_there_are() -> None:
    said = Contract.json_schema()["$defs"]["Feature"]["properties"]["encoding"]
    assert said["type"] == "string"
    for word, legal in (("raw", True), ("jpeg", True), ("jpeg:75", True), ("jpeg:0", False), ("png", False)):
        assert (re.fullmatch(said["pattern"], word) is not None) == legal
