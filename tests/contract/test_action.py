from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hudsim.contract import Contract
from hudsim.errors import ContractError
from tests.contract.documents import JOINTS, arm, contract

CLIPPED = Contract.load(arm(out_of_range="clip")).compile()
REJECTED = Contract.load(arm(out_of_range="reject")).compile()
ZERO = np.zeros(8, np.float32)


def with_value(at: int, value: float, dtype: Any = np.float32) -> Any:
    array = np.zeros(8, dtype)
    array[at] = value
    return array


@pytest.mark.parametrize("checks", [CLIPPED, REJECTED])
@pytest.mark.parametrize("value", [ZERO, ZERO.astype(np.float64), [0.0] * 8, [0] * 8, ZERO.astype(np.int32)])
def test_a_legal_action_passes_in_the_contracts_dtype(checks: Any, value: Any) -> None:
    action, clipped = checks.action(value)
    assert action.dtype == np.float32
    assert clipped is None
    assert_array_equal(action, ZERO)


@pytest.mark.parametrize("checks", [CLIPPED, REJECTED])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (with_value(1, np.nan), ["nan at [1] (joint2)"]),
        (with_value(0, np.inf), ["inf at [0] (joint1)"]),
        (with_value(1, -np.inf), ["-inf at [1] (joint2)"]),
        (with_value(1, 1e300, np.float64), ["1e+300 at [1] (joint2)", "fit float32"]),
        (with_value(1, np.nan, np.float64), ["nan at [1]"]),
        (np.zeros(7, np.float32), ["float32[7]", "float32[8]"]),
        (np.zeros((2, 8), np.float32), ["chunk of 2"]),
        (np.zeros((8, 1), np.float32), ["another shape"]),
        (np.zeros((), np.float32), ["float32[]"]),
        (np.zeros(8, bool), ["bool[8]"]),
        (np.full(8, 2**24 + 1), ["16777217", "exactly"]),
        (np.zeros(8, object), ["object"]),
        ("abc", ["'abc'"]),
        (None, ["None"]),
        ({"a": 1}, ["numbers"]),
    ],
)
def test_what_breaks_the_contract_is_refused(checks: Any, value: Any, words: list[str]) -> None:
    with pytest.raises(ContractError) as refused:
        checks.action(value)
    assert refused.value.feature == "action"
    for word in words:
        assert word in refused.value.message


def test_outside_the_limits_is_refused_under_reject() -> None:
    with pytest.raises(ContractError, match=r"1\.2\d* at \[2\] \(joint3\).*\[-1\.0, 1\.0\]"):
        REJECTED.action(with_value(2, 1.2))
    with pytest.raises(ContractError, match=r"1e\+300 at \[0\]"):
        REJECTED.action(with_value(0, 1e300, np.float64))
    with pytest.raises(ContractError, match="and 5 more outside"):
        REJECTED.action(np.full(8, 1.5, np.float32))


def test_outside_the_limits_is_clipped_and_marked_by_the_dimension_under_clip() -> None:
    given = np.array([3, 1e6, 1.2, -1.2, 0, 1, -1, -0.1], np.float32)
    before = given.copy()
    action, clipped = CLIPPED.action(given)
    assert_array_equal(action, np.array([2.8973, 1e6, 1, -1, 0, 1, -1, 0], np.float32))
    assert clipped is not None
    assert clipped.tolist() == [True, False, True, True, False, False, False, True]
    assert_array_equal(given, before)


def test_what_float32_cannot_hold_is_clipped_where_there_is_a_limit() -> None:
    action, clipped = CLIPPED.action(with_value(0, 1e300, np.float64))
    assert action[0] == np.float32(2.8973)
    assert clipped is not None
    assert clipped.tolist() == [True] + [False] * 7


@pytest.mark.parametrize("checks", [CLIPPED, REJECTED])
def test_a_limit_is_met_by_its_own_rounding(checks: Any) -> None:
    assert float(np.float32(2.8973)) > 2.8973
    for dtype in (np.float32, np.float64):
        action, clipped = checks.action(with_value(0, 2.8973, dtype))
        assert clipped is None
        assert action[0] == np.float32(2.8973)


def test_minus_zero_at_a_limit_of_zero_is_within() -> None:
    action, clipped = REJECTED.action(with_value(7, -0.0))
    assert clipped is None
    assert action[7] == 0


def test_a_chunk_is_checked_as_its_actions_are() -> None:
    chunk = np.zeros((5, 8), np.float32)
    chunk[3, 2] = 1.5
    actions, clipped = CLIPPED.chunk(chunk)
    assert actions.shape == (5, 8)
    assert clipped is not None
    assert np.argwhere(clipped).tolist() == [[3, 2]]
    with pytest.raises(ContractError, match=r"1\.5 at \[3, 2\] \(joint3\)"):
        REJECTED.chunk(chunk)
    chunk[4, 1] = np.nan
    with pytest.raises(ContractError, match=r"nan at \[4, 1\] \(joint2\)"):
        CLIPPED.chunk(chunk)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(8), "one action"),
        (np.zeros((0, 8)), "at least one"),
        (np.zeros((1, 4, 8)), "batch axis"),
        (np.zeros((4, 7)), r"float32\[T, 8\]"),
        (3.0, r"float32\[T, 8\]"),
    ],
)
def test_what_is_no_chunk_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        CLIPPED.chunk(value)


def discrete(low: int, high: int) -> Any:
    return contract({"dtype": "int64", "shape": [], "limits": {"min": low, "max": high}}).compile()


def test_a_discrete_action_is_a_0d_integer() -> None:
    checks = discrete(5, 7)
    legal: list[Any] = [6, np.int64(6), np.int8(6), np.array(6), np.uint64(6)]
    for value in legal:
        action, _ = checks.action(value)
        assert action.dtype == np.int64
        assert action.shape == ()
        assert action == 6
    for bad, words in ((4, "4"), (8, "8"), (6.0, "float64"), (True, "bool"), (np.array([6]), "chunk of 1")):
        with pytest.raises(ContractError, match=words):
            checks.action(bad)
    assert checks.chunk(np.array([5, 6, 7]))[0].tolist() == [5, 6, 7]
    with pytest.raises(ContractError, match=r"8 at \[1\]"):
        checks.chunk([5, 8])


def test_integers_above_2_to_the_24_stay_exact() -> None:
    big = 2**53 + 1
    checks = discrete(0, big)
    assert int(checks.action(big)[0]) == big
    with pytest.raises(ContractError):
        checks.action(big + 1)
    with pytest.raises(ContractError, match="fit int64"):
        checks.action(np.uint64(2**63))


def test_a_peer_that_has_floats_only_may_send_whole_ones() -> None:
    checks = discrete(0, 2**30)
    for value in (3, 2**24):
        assert checks.action(np.float32(value), lenient=True)[0] == value
        with pytest.raises(ContractError, match="float32"):
            checks.action(np.float32(value))
    for bad in (0.9999, 1e-9, 2.0**24 + 2, np.nan, np.inf, -1.0):
        with pytest.raises(ContractError):
            checks.action(np.float32(bad), lenient=True)
    assert checks.chunk(np.array([1, 2], np.float32), lenient=True)[0].dtype == np.int64


def test_multi_discrete_limits_are_by_the_dimension() -> None:
    doc = {"dtype": "int64", "shape": [3], "limits": {"min": [0, -1, 5], "max": [2, 1, 5]}}
    checks = contract(doc).compile()
    assert checks.action([2, -1, 5])[0].tolist() == [2, -1, 5]
    with pytest.raises(ContractError, match=r"4 at \[2\]"):
        checks.action([2, -1, 4])


def test_flags_are_flags() -> None:
    checks = contract({"dtype": "bool", "shape": [2]}).compile()
    assert checks.action([True, False])[0].tolist() == [True, False]
    assert checks.action(np.array([1, 0], np.float32), lenient=True)[0].tolist() == [True, False]
    for value in ([1, 0], [0.0, 1.0]):
        with pytest.raises(ContractError, match="bool"):
            checks.action(value)
    with pytest.raises(ContractError, match="from 0 to 1"):
        checks.action(np.array([2, 0], np.float32), lenient=True)


def test_hold_is_by_the_dimension() -> None:
    last = np.full(8, 0.5, np.float32)
    hold = ["zero"] * 7 + ["repeat"]
    held = Contract.load(arm(hold=hold)).compile().hold(last)
    assert held.tolist() == [0] * 7 + [0.5]
    repeated = CLIPPED.hold(last)
    assert_array_equal(repeated, last)
    assert repeated is not last


def test_zero_is_brought_within_the_limits() -> None:
    doc: dict[str, Any] = {"shape": [3], "limits": {"min": [1, -5, -1], "max": [2, -2, 1]}, "hold": "zero"}
    checks = contract(doc).compile()
    assert checks.hold(np.array([2, -5, 1], np.float32)).tolist() == [1, -2, 0]
    assert checks.hold(None).tolist() == [1, -2, 0]
    assert discrete(5, 7).hold(None) == 5
    held = discrete(5, 7).hold(np.array(6))
    assert held == 6
    assert held.shape == ()


def test_a_0d_action_that_holds_at_zero_stays_0d() -> None:
    checks = contract({"shape": [], "hold": "zero", "names": ["torque"], "limits": {"max": 3}}).compile()
    assert checks.hold(np.array(2, np.float32)).shape == ()
    action, _ = checks.action(2.5)
    assert action.shape == ()
    with pytest.raises(ContractError, match=r"5\.0 at \[1\],"):
        checks.chunk([1.0, 5.0])


def test_an_action_without_limits_is_only_finite() -> None:
    checks = Contract.load(arm(limits=None)).compile()
    given = np.full(8, 1e30, np.float32)
    assert checks.action(given)[0] is given
    with pytest.raises(ContractError, match="finite"):
        checks.action(with_value(3, np.inf))
    with pytest.raises(ContractError, match="fit float32"):
        checks.action(with_value(3, 1e39, np.float64))


def test_an_action_of_two_axes_is_checked() -> None:
    doc = {"shape": [2, 8], "names": JOINTS, "limits": {"min": -1, "max": 1}, "hold": ["zero"] * 7 + ["repeat"]}
    checks = contract(doc).compile()
    assert checks.chunk(np.zeros((3, 2, 8)))[0].shape == (3, 2, 8)
    with pytest.raises(ContractError, match=r"2\.0 at \[1, 0, 7\] \(gripper\)"):
        checks.chunk(np.stack([np.zeros((2, 8)), np.stack([with_value(7, 2), ZERO])]))
    assert checks.hold(np.ones((2, 8), np.float32)).tolist() == [[0] * 7 + [1]] * 2
