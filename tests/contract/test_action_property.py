from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hudsim.errors import ContractError
from tests.contract.documents import contract

LOW, HIGH = [-2.8973, None, 0.0, -1.0], [2.8973, 1.0, None, 1.0]
CHECKS = {
    (dtype, rule): contract(
        {"dtype": dtype, "shape": [4], "limits": {"min": LOW, "max": HIGH}, "out_of_range": rule}
    ).compile()
    for dtype in ("float16", "float32", "float64")
    for rule in ("reject", "clip")
}
NUMBERS = st.one_of(
    st.floats(width=32),
    st.floats(),
    st.sampled_from([2.8973, -2.8973, 1.0, -0.0, np.nextafter(1.0, 2), 1e300, -1e300, 65520.0, np.nan, np.inf]),
)
ARRAYS = st.sampled_from([np.float16, np.float32, np.float64]).flatmap(
    lambda dtype: hnp.arrays(np.float64, (4,), elements=NUMBERS).map(lambda array: narrowed(array, dtype))
)


def narrowed(array: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def by_definition(array: Any, dtype: str, rule: str) -> tuple[list[float], list[bool]] | None:
    """What the contract says, one number after the other: (values, clipped), or None for a refusal."""
    values, clipped = [], []
    for number, low, high in zip(array.tolist(), LOW, HIGH, strict=True):
        if not np.isfinite(number):
            return None
        value = float(narrowed(np.float64(number), dtype))
        lowest = -np.inf if low is None else float(np.dtype(dtype).type(low))
        highest = np.inf if high is None else float(np.dtype(dtype).type(high))
        within = min(max(value, lowest), highest)
        if not np.isfinite(within) or (within != value and rule == "reject"):
            return None
        values.append(within)
        clipped.append(within != value)
    return values, clipped


@given(ARRAYS, st.sampled_from(sorted(CHECKS)))
def test_a_check_does_what_its_definition_says(array: Any, which: tuple[str, str]) -> None:
    expected = by_definition(array, *which)
    before = array.tobytes()
    for check, given_array in ((CHECKS[which].action, array), (CHECKS[which].chunk, array[np.newaxis])):
        try:
            action, clipped = check(given_array)
        except ContractError:
            assert expected is None
            continue
        assert expected is not None
        assert action.dtype == which[0]
        assert action.ravel().tolist() == expected[0]
        marks = np.zeros(4, bool) if clipped is None else clipped.ravel()
        assert marks.tolist() == expected[1]
    assert array.tobytes() == before
