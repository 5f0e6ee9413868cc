from __future__ import annotations

from typing import Any

import pytest

from hudsim.contract import Contract
from hudsim.errors import ContractError


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def action(**keys: Any) -> dict[str, Any]:
    return {"features": {"action": {"role": "action", "shape": [2], **keys}}}


@pytest.mark.parametrize("schema", [{}, {"schema": "hudsim/1"}], ids=["v0", "hudsim/1"])
@pytest.mark.parametrize(
    "doc",
    [
        {"features": [1]},
        {"features": None},
        {"features": {"action": 3}},
        {"features": {"action": None}},
        {"features": {1: {"role": "observation"}, "action": {"role": "action", "shape": [1]}}},
        {"features": {"": {"role": "observation"}, "action": {"role": "action", "shape": [1]}}},
        {"timing": 3, **action()},
        {"extra": 5, "x": 1, **action()},
        {"control_rate": float("nan"), **action()},
        {"robot_type": 7, **action()},
        action(extra=[1], zz=1),
        action(shape="abc"),
        action(shape=[10**12]),
        action(shape=[1.5]),
        action(names="ab"),
        action(names=[1, 2]),
        action(dtype=["x"]),
        action(dtype="V8"),
        action(stats={"a": nested(5000)}),
        action(limits="x"),
        action(limits={"min": {}}),
        action(limits={"min": []}),
        action(limits={"min": [[1], [2, 3]]}),
        action(limits={"min": nested(40)}),
        action(limits={"min": nested(5000)}),
        action(limits={"min": -1}, dtype="uint8"),
        action(limits={"min": 1e300}, dtype="int64"),
        action(limits={"min": 0}, dtype="bool"),
    ],
)
def test_a_broken_document_is_a_contract_error_and_nothing_else(schema: dict[str, Any], doc: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        Contract.load({**doc, **schema})


def test_text_that_nests_without_end_is_refused() -> None:
    with pytest.raises(ContractError, match="JSON"):
        Contract.load("[" * 100_000)
