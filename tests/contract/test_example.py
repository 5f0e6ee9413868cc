from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.contract import Contract
from hudsim.contract.feature import DTYPES
from hudsim.errors import ContractError

SHAPES = st.lists(st.integers(1, 4), max_size=3)


@st.composite
def limits(draw: st.DrawFn, shape: list[int], dtype: str) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        numbers: Any = st.floats(-1e6, 1e6) if dtype != "float16" else st.floats(-1e3, 1e3)
    else:
        numbers = st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))

    def side(values: list[Any]) -> Any:
        return np.array(values, dtype=object).reshape(shape).tolist()

    count = int(np.prod(shape, dtype=int))
    pairs = draw(st.lists(st.tuples(numbers, numbers).map(sorted), min_size=count, max_size=count))
    open_ended = draw(st.booleans())
    low = side([None if open_ended and i % 2 else pair[0] for i, pair in enumerate(pairs)])
    return {"min": low, "max": side([pair[1] for pair in pairs])}


@st.composite
def features(draw: st.DrawFn, role: str) -> dict[str, Any]:
    if role == "observation" and draw(st.booleans()):
        kind = draw(st.sampled_from(["rgb", "bgr", "gray", "depth"]))
        shape = [draw(st.integers(1, 5)), draw(st.integers(1, 5))] + ([3] if kind in ("rgb", "bgr") else [])
        return {"role": role, "type": kind, "dtype": draw(st.sampled_from(["uint8", "float32"])), "shape": shape}
    shape, dtype = draw(SHAPES), draw(st.sampled_from(DTYPES))
    feature: dict[str, Any] = {"role": role, "shape": shape, "dtype": dtype}
    if dtype != "bool" and draw(st.booleans()):
        feature["limits"] = draw(limits(shape, dtype))
    width = shape[-1] if shape else 1
    if draw(st.booleans()):
        feature["names"] = [f"d{i}" for i in range(width)]
    if role == "action":
        feature["out_of_range"] = draw(st.sampled_from(["reject", "clip"]))
        feature["hold"] = draw(st.lists(st.sampled_from(["repeat", "zero"]), min_size=width, max_size=width))
    return feature


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["a", "b/c", "observation/d"]), unique=True))
    shown = {name: draw(features("observation")) for name in names}
    return {"schema": "hudsim/1", "control_rate": 10, "features": {**shown, "act": draw(features("action"))}}


@given(documents(), st.integers(0, 2**32))
def test_an_example_passes_its_own_contract(doc: dict[str, Any], seed: int) -> None:
    contract = Contract.load(doc)
    checks = contract.compile()
    observation, action = contract.example(seed)
    checked = checks.observation(observation)
    assert all(checked[name] is observation[name] for name in observation)
    for value, clipped in (checks.action(action), checks.chunk(action[np.newaxis])):
        assert clipped is None
        assert value.dtype == action.dtype
    held = checks.hold(action)
    assert (held.shape, held.dtype) == (action.shape, action.dtype)
    checks.action(checks.hold(None))
    checks.action(held)


@given(documents())
def test_a_document_survives_json(doc: dict[str, Any]) -> None:
    contract = Contract.load(doc)
    again = Contract.load(json.dumps(contract.to_json()))
    assert again == contract
    assert again.diff(contract) == []


@given(documents(), st.integers(0, 5))
def test_the_same_seed_gives_the_same_example(doc: dict[str, Any], seed: int) -> None:
    contract = Contract.load(doc)
    first, second = contract.example(seed), contract.example(seed)
    np.testing.assert_array_equal(first[1], second[1])
    for name, value in first[0].items():
        np.testing.assert_array_equal(value, second[0][name])


def test_there_is_no_example_of_what_is_not_known() -> None:
    with pytest.raises(ContractError, match="no shape"):
        Contract.load({"features": {"s": {}, "action": {"shape": [1]}}}).example()
