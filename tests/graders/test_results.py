from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import UsageError, WireError
from hudsim.graders import EvaluationResult, SubScore, Verdict
from hudsim.graders.number import LARGEST

NO_NUMBERS = [math.nan, math.inf, -math.inf, True, False, np.True_, np.float64("nan"), np.array([0.5]), "0.5", None,
              1e308, -1.1e9, 10**400, -(10**400)]  # fmt: skip
NO_JSON = [object(), {1}, b"x", 1j, Path("x"), np.zeros(2), len, 2**1024, {("a", "b"): 1}, {1: 0, "1": 1}]


class Colour(StrEnum):
    red = "red"


class Size(IntEnum):
    large = 3


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", NO_NUMBERS, ids=repr)
def test_what_is_no_finite_number_is_refused_by_field(number: Any) -> None:
    truth = isinstance(number, bool | np.bool_)  # as a value it is a measurement, and 1.0 or 0.0
    for field in ("weight",) if truth else ("value", "weight"):
        with pytest.raises(UsageError, match=rf"^SubScore: {field}: got .*, expected a .*number"):
            SubScore(**{"name": "x", "value": 0.5, field: number})
    with pytest.raises(UsageError, match=r"^EvaluationResult: reward: got .*, expected a .*number"):
        EvaluationResult(reward=number)


@pytest.mark.parametrize("value", [True, np.True_])
def test_a_truth_is_a_value(value: Any) -> None:
    assert SubScore(name="x", value=value).value == 1.0
    assert SubScore(name="x", value=not value).value == 0.0


@pytest.mark.parametrize("value", [1.0000000001, -0.1, 2, np.float32(1.5), 10**400])
def test_a_value_outside_0_to_1_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^SubScore: value: got"):
        SubScore(name="x", value=value)


def test_a_reward_and_a_weight_may_be_any_finite_number() -> None:
    assert EvaluationResult(reward=-3.5).reward == -3.5
    assert EvaluationResult.from_float(12).reward == 12.0
    assert SubScore(name="penalty", value=1, weight=-2).weight == -2.0


@pytest.mark.parametrize(
    "number", [np.float32(0.5), np.float64(0.5), np.array(0.5), np.float16(0.5), np.longdouble(0.5)]
)
def test_a_numpy_scalar_becomes_a_plain_float(number: Any) -> None:
    for got in (
        SubScore(name="x", value=number).value,
        SubScore(name="x", value=1, weight=number).weight,
        EvaluationResult(reward=number).reward,
    ):
        assert type(got) is float
        assert got == 0.5
    assert type(EvaluationResult.from_frame({"score": np.int64(1)}).reward) is float
    assert EvaluationResult(done=np.False_).done is False  # type: ignore[arg-type]


def test_a_value_is_checked_when_it_is_assigned_and_stays_what_it_was() -> None:
    subscore, result = SubScore(name="x", value=0.5), EvaluationResult(reward=0.5)
    with pytest.raises(UsageError, match=r"^SubScore: value: got 2\.0"):
        subscore.value = 2.0
    with pytest.raises(UsageError, match=r"^EvaluationResult: reward: got nan"):
        result.reward = math.nan
    with pytest.raises(UsageError, match="no field of SubScore 'valeu'; did you mean 'value'"):
        subscore.valeu = 1.0
    assert (subscore.value, result.reward) == (0.5, 0.5)


# -- fields ------------------------------------------------------------------------------------------------------------


def test_every_field_that_is_wrong_is_named() -> None:
    with pytest.raises(UsageError) as refused:
        SubScore(weight=math.nan, vlaue=1.0)  # type: ignore[call-arg]
    for words in ("name: got nothing", "weight: got nan", "no field of SubScore 'vlaue'; did you mean 'value'?"):
        assert words in refused.value.message


def test_a_fault_within_a_subscore_is_named_by_its_path() -> None:
    leaf: Any = {"name": "leaf", "value": 7}
    with pytest.raises(UsageError, match=r"^EvaluationResult: subscores\.1\.children\.0\.value: got 7"):
        EvaluationResult(subscores=[{"name": "a", "value": 1}, {"name": "b", "value": 1, "children": [leaf]}])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"^EvaluationResult: subscores\.0\.extra: no such field"):
        EvaluationResult(subscores=[{"name": "a", "value": 1, "extra": 2}])  # type: ignore[list-item]


def test_metadata_is_another_name_of_info() -> None:
    subscore = SubScore.model_validate({"name": "x", "value": 0.25, "metadata": {"a": 1}})
    assert subscore.info == subscore.metadata == {"a": 1}
    subscore.metadata = {"b": 2}
    assert subscore.info == {"b": 2}
    assert subscore.score == 0.25
    with pytest.raises(UsageError, match="info: given twice"):
        SubScore(name="x", value=1, info={}, metadata={})  # type: ignore[call-arg]


def test_further_fields_of_a_result_are_kept_as_plain_json() -> None:
    result = EvaluationResult(reward=1.0, success=np.True_, steps=np.int64(7))  # type: ignore[call-arg]
    assert result.to_frame()["success"] is True
    assert result.to_frame()["steps"] == 7
    with pytest.raises(UsageError, match=r"^EvaluationResult: world: got a object"):
        EvaluationResult(world=object())  # type: ignore[call-arg]


@pytest.mark.parametrize(("given", "meant"), [("score", "reward"), ("is_error", "isError")])
def test_a_field_that_would_silently_mean_nothing_is_refused(given: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"got {given}, expected {meant}"):
        EvaluationResult(**cast("Any", {given: 1}))


# -- info --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: type(value).__name__)
def test_what_is_no_json_is_refused_by_its_place(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^SubScore: info: deep\[1\]\.er: got an? .*, expected plain JSON"):
        SubScore(name="x", value=1, info={"deep": [0, {"er": value}]})
    with pytest.raises(UsageError, match=r"^EvaluationResult: info: x: got"):
        EvaluationResult(info={"x": value})


def test_info_that_holds_itself_is_refused() -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    with pytest.raises(UsageError, match="expected plain JSON"):
        EvaluationResult(info=ring)


def test_what_json_has_another_form_for_takes_that_form() -> None:
    result = EvaluationResult(
        info={
            "tuple": (1, np.float32(0.5)),
            "not finite": [math.nan, math.inf],
            "enums": [Colour.red, Size.large],
            "keys": {1: "a", None: "b", False: "c", 1.5: "d", np.int64(2): "e"},
            "mapping": MappingProxyType({"a": 1}),
            "surrogate": "a\udcffb",
        }
    )
    assert result.info == {
        "tuple": [1, 0.5],
        "not finite": [None, None],
        "enums": ["red", 3],
        "keys": {"1": "a", "null": "b", "false": "c", "1.5": "d", "2": "e"},
        "mapping": {"a": 1},
        "surrogate": "a?b",
    }
    assert type(result.info["enums"][0]) is str
    assert type(result.info["enums"][1]) is int


def test_text_that_no_utf8_can_hold_is_cleaned() -> None:
    result = EvaluationResult(content="\udc80", subscores=[SubScore(name="\udc80", value=1)])
    assert json.dumps(result.to_frame(), ensure_ascii=False).encode().count(b'"?"') == 2


# -- outcome and problems ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"reward": 1.0}, "passed"),
        ({"reward": 0.3}, "partial"),
        ({}, "failed"),
        ({"isError": True}, "grader_error"),
        ({"isError": True, "reward": 1.0}, "grader_error"),
        ({"verdict": Verdict.tampered}, "tampered"),
        ({"verdict": "resource_limit", "reward": 0.5}, "resource_limit"),
        ({"verdict": Verdict.infra_error}, "infra_error"),
        ({"verdict": Verdict.infra_error, "isError": True}, "infra_error"),
        ({"verdict": Verdict.tampered, "isError": True}, "grader_error"),
    ],
)
def test_the_outcome_is_the_verdict_or_what_the_reward_says(fields: dict[str, Any], outcome: str) -> None:
    result = EvaluationResult(**fields)
    assert result.outcome is Verdict(outcome)
    frame = result.to_frame()
    assert (frame["verdict"], frame["isError"]) == (outcome, not result.outcome.valid)
    assert frame["score"] == (result.reward if result.outcome.valid else None)


def test_an_unknown_verdict_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"verdict: got 'cheated', expected 'passed', .*'tampered'"):
        EvaluationResult(verdict="cheated")  # type: ignore[arg-type]


def test_a_result_that_adds_up_has_no_problem() -> None:
    parts = [SubScore(name="a", value=1, weight=0.7), SubScore(name="b", value=0.5, weight=0.3)]
    penalty = SubScore(name="c", value=1, weight=-0.2)
    assert EvaluationResult(reward=0.85, subscores=parts).problems() == []
    assert EvaluationResult(reward=0.65, subscores=[*parts, penalty]).problems() == []
    assert EvaluationResult(reward=0.5, episode=3).problems() == []  # type: ignore[call-arg]
    assert EvaluationResult(reward=0.5, subscores=[]).problems() == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"subscores": [("a", 1, 0.5), ("a", 1, 0.5)], "reward": 1.0}, "2 subscores are called 'a'"),
        ({"subscores": [("a", 1, 0.5), ("b", 1, 0.7)], "reward": 1.2}, "the positive weights make 1.2, expected 1"),
        ({"subscores": [("a", 0.6, 1.0)], "reward": 0.8}, "the subscores make 0.6, the reward is 0.8"),
        ({"verdict": "passed", "reward": 0.2}, "the verdict is passed, the reward 0.2 says partial"),
        ({"verdict": "tampered", "reward": 0.9}, "the verdict is tampered, the reward is 0.9"),
        ({"verdict": "failed", "isError": True}, "carries a reward, and isError"),
        ({"rewards": 1.0}, "'rewards' is no field of a grade; did you mean 'reward'?"),
    ],
)
def test_what_does_not_add_up_is_said(fields: dict[str, Any], problem: str) -> None:
    if "subscores" in fields:
        fields["subscores"] = [SubScore(name=n, value=v, weight=w) for n, v, w in fields["subscores"]]
    (said,) = EvaluationResult(**fields).problems()
    assert problem in said


# -- the wire ----------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
INFOS = st.dictionaries(st.text(), VALUES, max_size=3)
FINITE = st.floats(-LARGEST, LARGEST)
LEAVES = st.builds(SubScore, name=st.text(), weight=FINITE, value=st.floats(0, 1), info=st.none() | INFOS)
NODES = st.recursive(
    LEAVES,
    lambda inner: st.builds(SubScore, name=st.text(), value=st.floats(0, 1), children=st.lists(inner, max_size=3)),
    max_leaves=6,
)
RESULTS = st.builds(
    EvaluationResult,
    reward=FINITE,
    done=st.booleans(),
    content=st.none() | st.text(),
    info=INFOS,
    isError=st.booleans(),
    subscores=st.none() | st.lists(NODES, max_size=3),
    verdict=st.none() | st.sampled_from(Verdict),
    further=VALUES,
)


@given(RESULTS)
def test_a_result_crosses_the_wire_whole(result: EvaluationResult) -> None:
    frame = result.to_frame()
    text = json.dumps(frame, allow_nan=False, ensure_ascii=False)
    back = EvaluationResult.from_frame(json.loads(text.encode()))
    assert back.to_frame() == frame
    assert back.outcome is result.outcome
    assert back.subscores == result.subscores
    assert isinstance(result.problems(), list)
    if result.outcome.valid:
        assert back.reward == result.reward


def test_the_frame_s_names_are_the_wire_s() -> None:
    leaf = SubScore(name="leaf", value=0.5, info={"why": "half"})
    root = SubScore(name="root", value=0.5, children=[leaf])
    assert EvaluationResult(reward=0.5, content="half", subscores=[root]).to_frame() == {
        "score": 0.5,
        "done": True,
        "content": "half",
        "info": {},
        "isError": False,
        "subscores": [
            {
                "name": "root",
                "weight": 1.0,
                "value": 0.5,
                "info": None,
                "children": [
                    {"name": "leaf", "weight": 1.0, "value": 0.5, "info": {"why": "half"}, "children": None},
                ],
            }
        ],
        "verdict": "partial",
    }


@pytest.mark.parametrize("frame", [{"score": 1}, {"score": 1.0, "success": True}, MappingProxyType({"score": 1.0})])
def test_a_score_alone_is_a_frame(frame: Mapping[str, Any]) -> None:
    result = EvaluationResult.from_frame(frame)
    assert (result.reward, result.outcome) == (1.0, Verdict.passed)


def test_an_error_needs_no_score() -> None:
    for frame in ({"isError": True}, {"isError": True, "score": None}, {"isError": True, "score": 0.0}):
        assert EvaluationResult.from_frame(frame).outcome is Verdict.grader_error


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({}, "score: got None, expected a number"),
        ({"reward": 1.0}, "score: got None"),
        ({"score": math.nan}, "score: got nan"),
        ({"score": True}, "score: got True"),
        ({"score": "1"}, "score: got '1'"),
        ({"score": math.nan, "isError": True}, "score: got nan"),
        ({"score": 1.0, "verdict": "cheated"}, "verdict: got 'cheated'"),
        ({"score": 1.0, "subscores": [{"name": "a"}]}, r"subscores\.0\.value: got nothing"),
        ({"score": 1.0, "info": []}, "info: got"),
        ([], r"got \[\], expected an object"),
        (None, "got None, expected an object"),
    ],
)
def test_what_is_no_grade_is_a_wire_error(frame: Any, words: str) -> None:
    with pytest.raises(WireError, match=words):
        EvaluationResult.from_frame(frame)


@given(
    st.dictionaries(st.sampled_from(["score", "done", "content", "info", "isError", "subscores", "verdict"]), VALUES)
)
def test_no_frame_brings_another_error(frame: dict[str, Any]) -> None:
    with contextlib.suppress(WireError):
        assert EvaluationResult.from_frame(frame).to_frame()


def test_what_a_result_takes_it_can_send_however_deep() -> None:
    deep: Any = 0
    for _ in range(98):
        deep = [deep]
    tree = SubScore(name="leaf", value=1, info={"deep": deep})
    for level in range(60):
        tree = SubScore(name=str(level), value=1, children=[tree])
    result = EvaluationResult(reward=1, info={"deep": deep}, subscores=[tree])
    assert EvaluationResult.from_frame(json.loads(json.dumps(result.to_frame()))).subscores == [tree]


def test_what_was_put_into_info_later_is_checked_before_it_is_sent() -> None:
    result = EvaluationResult(info={"count": 1}, subscores=[SubScore(name="a", value=1, info={})])
    result.info["count"] = np.int64(2)
    assert json.dumps(result.to_frame())
    assert result.subscores is not None
    assert result.subscores[0].info is not None
    result.subscores[0].info["world"] = object()
    with pytest.raises(UsageError, match=r"^subscores\[0\]\.info\.world: got a object"):
        result.to_frame()


def test_importing_the_graders_brings_no_array_no_simulator_and_no_socket() -> None:
    heavy = ("numpy", "gymnasium", "mujoco", "websockets", "uvloop", "asyncssh", "cv2")
    code = f"import sys, hudsim.graders; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "[]"
