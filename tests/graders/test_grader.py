from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import numpy as np
import pytest

from hudsim.errors import UsageError
from hudsim.graders import Grader, SubScore, combine
from tests.asyncrun import on_loop


class Given(Grader):
    """Scores what it is given."""

    name = "given"

    @classmethod
    async def compute_score(cls, *, result: Any, **_: Any) -> Any:
        return result


class Broken(Grader):
    name = "broken"

    @classmethod
    async def compute_score(cls, **_: Any) -> float:
        raise RuntimeError("no compiler")


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize("result", [0.5, np.float32(0.5), (0.5, None), SubScore(name="own", value=0.5, weight=9)])
@on_loop
async def test_a_score_becomes_a_subscore_of_the_caller_s_name_and_weight(result: Any) -> None:
    subscore = await Given.grade(result=result)
    assert (subscore.name, subscore.weight, subscore.value) == ("given", 1.0, 0.5)
    subscore = await Given.grade(0.3, "mine", result=result)
    assert (subscore.name, subscore.weight) == ("mine", 0.3)


@on_loop
async def test_what_the_grader_says_is_kept_beside_its_parameters() -> None:
    child = SubScore(name="child", value=1)
    subscore = await Given.grade(result=(True, {"passed": 3}), command="pytest -q")
    assert subscore.value == 1.0
    assert subscore.info == {"passed": 3, "_parameters": {"result": [True, {"passed": 3}], "command": "pytest -q"}}
    subscore = await Given.grade(result=SubScore(name="x", value=1, children=[child], info={"a": 1}))
    assert subscore.children == [child]
    assert subscore.info is not None
    assert subscore.info["a"] == 1


@on_loop
async def test_parameters_that_are_no_json_are_recorded_as_their_repr() -> None:
    ring: list[Any] = []
    ring.append(ring)
    subscore = await Given.grade(
        result=0,
        bytes=b"x" * 5000,
        array=np.zeros(2),
        nested={"answer": [NoRepr(), {1}, np.int64(3), math.nan]},
        ring=ring,
        text="x" * 5000,
        large=2**20000,
    )
    assert subscore.info is not None
    said = subscore.info["_parameters"]
    assert len(said["bytes"]) == 1000
    assert said["bytes"].endswith("…")
    assert said["array"] == "array([0., 0.])"
    assert said["nested"] == {"answer": ["<NoRepr>", "{1}", 3, None]}
    assert said["text"] == "x" * 5000
    assert said["large"] == "<int>"  # more digits than Python writes
    assert json.dumps(said, allow_nan=False)


@pytest.mark.parametrize(
    "result", [1.5, -0.1, math.nan, "1", None, [1], np.zeros(2), (0.5, {}, 1), (0.5, {"x": object()})]
)
@on_loop
async def test_what_is_no_score_names_the_grader(result: Any) -> None:
    with pytest.raises(UsageError) as refused:
        await Given.grade(name="tests", result=result)
    assert refused.value.__notes__ == ["in the grader 'tests' (Given)"]


@on_loop
async def test_a_weight_that_is_none_is_refused_before_the_work() -> None:
    worked: list[bool] = []

    class Works(Grader):
        @classmethod
        async def compute_score(cls, **_: Any) -> float:
            worked.append(True)
            return 1.0

    with pytest.raises(UsageError, match="got nan, expected a finite number"):
        await Works.grade(math.nan)
    assert worked == []


@on_loop
async def test_a_grader_that_raises_is_named_within_combine() -> None:
    with pytest.raises(RuntimeError, match="no compiler") as failed:
        await combine(Given.grade(result=1), Broken.grade(weight=2))
    first, second = failed.value.__notes__
    assert first == "in the grader 'broken' (Broken)"
    assert second.startswith("combine: item 2 of 2")


@on_loop
async def test_graders_combine() -> None:
    result = await combine(
        Given.grade(0.75, result=1), Given.grade(0.25, result=0), SubScore(name="c", value=0, weight=1)
    )
    assert result.reward == 0.375
    assert [subscore.name for subscore in result.subscores or ()] == ["given-1", "given-2", "c"]


@on_loop
async def test_a_grader_without_a_score_says_so() -> None:
    class Empty(Grader):
        name: ClassVar[str] = "empty"

    with pytest.raises(NotImplementedError, match="Empty does not implement compute_score"):
        await Empty.grade()
