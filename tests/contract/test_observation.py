from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.contract import Contract
from hudsim.errors import ContractError
from tests.contract.documents import ARM, contract

CHECKS = Contract.load(ARM).compile()


def observation(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = Contract.load(ARM).example()[0]
    return data | {f"observation/{key}": value for key, value in changes.items()}


def test_a_legal_observation_comes_back_as_the_same_arrays() -> None:
    data = observation()
    checked = CHECKS.observation(data)
    assert list(checked) == list(data)
    assert all(checked[name] is data[name] for name in data)


@pytest.mark.parametrize(
    ("state", "dtype"),
    [
        (np.linspace(0, 1, 8), "float64"),
        (np.linspace(0, 1, 8).astype(">f4"), ">f4"),
        (np.linspace(0, 1, 8).astype(np.float16), "float16"),
        (np.arange(16, dtype=np.float32)[::2], "strided"),
        ([0.5] * 8, "list"),
        ([1] * 8, "list of ints"),
    ],
)
def test_a_dtype_of_the_same_kind_is_cast(state: Any, dtype: str) -> None:
    checked = CHECKS.observation(observation(state=state))["observation/state"]
    assert checked.dtype == np.float32, dtype
    np.testing.assert_array_equal(checked, np.asarray(state).astype(np.float32))


@pytest.mark.parametrize(
    ("changes", "feature", "words"),
    [
        ({"state": np.zeros(7, np.float32)}, "state", ["float32[7]", "float32[8]"]),
        ({"state": np.zeros((1, 8), np.float32)}, "state", ["batch"]),
        ({"state": np.zeros(8, np.int64)}, "state", ["int64[8]", "float32"]),
        ({"state": np.zeros(8, bool)}, "state", ["bool[8]"]),
        ({"state": np.array([0] * 7 + [np.nan], np.float32)}, "state", ["nan at [7] (gripper)", "finite"]),
        ({"state": np.array([1e300] * 8)}, "state", ["1e+300 at [0]", "finite float32"]),
        ({"state": "hello"}, "state", ["'hello'", "numbers"]),
        ({"state": None}, "state", ["None", "numbers"]),
        ({"state": [[1, 2], [3]]}, "state", ["an array of numbers"]),
        ({"state": np.zeros(8, complex)}, "state", ["complex128"]),
        ({"state": np.array(["a"] * 8)}, "state", ["numbers"]),
        ({"scene": np.zeros((3, 24, 32), np.uint8)}, "scene", ["CHW", "HWC"]),
        ({"scene": np.zeros((32, 24, 3), np.uint8)}, "scene", ["swapped"]),
        ({"scene": np.zeros((24, 32, 4), np.uint8)}, "scene", ["alpha"]),
        ({"scene": np.zeros((4, 24, 32, 3), np.uint8)}, "scene", ["stack of 4"]),
        ({"scene": np.zeros((24, 32, 3), np.float32)}, "scene", ["float32[24, 32, 3]", "scale"]),
        ({"scene": np.full((24, 32, 3), 256)}, "scene", ["256", "fit uint8"]),
        ({"scene": np.full((24, 32, 3), -1)}, "scene", ["-1", "fit uint8"]),
        ({"stat": np.zeros(8)}, "stat", ["not in the contract", "did you mean 'observation/state'"]),
    ],
)
def test_what_breaks_the_contract_is_refused_by_name(changes: dict[str, Any], feature: str, words: list[str]) -> None:
    with pytest.raises(ContractError) as refused:
        CHECKS.observation(observation(**changes))
    assert refused.value.feature == f"observation/{feature}"
    for word in words:
        assert word in refused.value.message


def test_a_missing_feature_is_refused_by_name() -> None:
    data = observation()
    del data["observation/depth"]
    with pytest.raises(ContractError, match="there are: observation/scene") as refused:
        CHECKS.observation(data)
    assert refused.value.feature == "observation/depth"


@pytest.mark.parametrize("data", [[1, 2], None, "data", 3.0])
def test_what_is_no_mapping_is_refused(data: Any) -> None:
    with pytest.raises(ContractError, match="a mapping"):
        CHECKS.observation(data)


def test_infinities_pass_where_the_feature_says_so() -> None:
    depth = np.full((24, 32), np.inf, np.float32)
    depth[0, 0] = np.nan
    assert CHECKS.observation(observation(depth=depth))["observation/depth"] is depth


def test_whole_images_of_another_integer_dtype_are_carried_exactly() -> None:
    scene = np.arange(24 * 32 * 3).reshape(24, 32, 3) % 256
    checked = CHECKS.observation(observation(scene=scene))["observation/scene"]
    assert checked.dtype == np.uint8
    np.testing.assert_array_equal(checked, scene)


def test_large_finite_numbers_are_finite() -> None:
    checks = contract({"shape": [1]}, s={"dtype": "float64", "shape": [4]}).compile()
    top = np.full(4, np.finfo(np.float64).max)
    assert checks.observation({"s": top})["s"] is top


@pytest.mark.parametrize("size", [1, 8, 64, 65, 5000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_number_is_found_wherever_it_is(size: int, bad: float) -> None:
    checks = contract({"shape": [1]}, s={"dtype": "float32", "shape": [size]}).compile()
    values = np.linspace(-1, 1, size, dtype=np.float32)
    for at in {0, size // 2, size - 1}:
        broken = values.copy()
        broken[at] = bad
        with pytest.raises(ContractError, match=rf"at \[{at}\]"):
            checks.observation({"s": broken})
    checks.observation({"s": values})


def test_integers_and_flags_are_carried_exactly() -> None:
    checks = contract(
        {"shape": [1]}, n={"dtype": "int64", "shape": []}, flags={"dtype": "bool", "shape": [3]}
    ).compile()
    checked = checks.observation({"n": 2**62 + 1, "flags": [True, False, True]})
    assert int(checked["n"]) == 2**62 + 1
    assert checked["flags"].tolist() == [True, False, True]
    with pytest.raises(ContractError, match="int64"):
        checks.observation({"n": 1, "flags": np.array([1, 0, 1])})
    with pytest.raises(ContractError, match="fit int64"):
        checks.observation({"n": np.uint64(2**63), "flags": [True] * 3})


def test_limits_of_an_observation_only_inform() -> None:
    checks = contract({"shape": [1]}, s={"dtype": "float32", "shape": [1], "limits": {"min": 0, "max": 1}}).compile()
    checks.observation({"s": np.array([5], np.float32)})
