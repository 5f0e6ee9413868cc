from __future__ import annotations

from hudsim.contract import Contract
from tests.contract.documents import ARM, JOINTS, arm


def test_equal_contracts_have_no_difference() -> None:
    assert Contract.load(ARM).diff(Contract.load(ARM)) == []


def test_each_difference_is_a_line() -> None:
    other = arm(names=list(reversed(JOINTS)), limits={"min": -1, "max": 1}, out_of_range=None)
    other["control_rate"] = 20
    other["timing"]["mode"] = "realtime"
    other["features"]["observation/state"] |= {"shape": [7], "names": JOINTS[:7]}
    del other["features"]["observation/depth"]
    other["features"]["observation/wrist"] = {"role": "observation"}
    lines = Contract.load(ARM).diff(Contract.load(other))
    assert "control_rate 50.0 here, 20.0 there" in lines
    assert "timing.mode lockstep here, realtime there" in lines
    assert "observation/depth: here only" in lines
    assert "observation/wrist: there only" in lines
    assert "observation/state: shape [8] here, [7] there" in lines
    assert any(line.startswith("action: names in another order") for line in lines)
    assert any(line.startswith("action: limits.max") for line in lines)
    assert "action: out_of_range clip here, not given there" in lines
