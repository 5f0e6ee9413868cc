from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.contract import Binding
from hudsim.errors import ContractError

THERE = ["a", "b", "c", "d"]


def test_a_permuted_order_is_permuted_back() -> None:
    binding = Binding(there=THERE, wanted=["d", "a", "c", "b"], feature="action")
    array = np.arange(8).reshape(2, 4)
    assert binding.select(array).tolist() == [[3, 0, 2, 1], [7, 4, 6, 5]]
    np.testing.assert_array_equal(binding.scatter(binding.select(array)), array)


@given(st.permutations(THERE))
def test_scatter_undoes_select(wanted: list[str]) -> None:
    binding = Binding(there=THERE, wanted=wanted, feature="action")
    array = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(binding.scatter(binding.select(array)), array)
    np.testing.assert_array_equal(binding.select(binding.scatter(array)), array)


def test_some_of_the_dimensions_can_be_selected() -> None:
    binding = Binding(there=THERE, wanted=["c", "a"], feature="observation/state")
    assert not binding.covers
    assert binding.select(np.arange(4)).tolist() == [2, 0]
    with pytest.raises(ContractError, match="no value for b, d"):
        binding.scatter(np.arange(2))


def test_a_missing_name_lists_those_there_are() -> None:
    with pytest.raises(ContractError, match=r"a, b, c, d.*also elbow") as refused:
        Binding(there=THERE, wanted=["a", "elbow"], feature="observation/state")
    assert refused.value.feature == "observation/state"


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ContractError, match="twice: a"):
        Binding(there=["a", "a"], wanted=["a"], feature="x")
    with pytest.raises(ContractError, match="twice: b"):
        Binding(there=THERE, wanted=["b", "b"], feature="x")


def test_the_same_order_copies_nothing() -> None:
    binding = Binding(there=THERE, wanted=THERE, feature="x")
    array = np.arange(4)
    assert binding.select(array) is array
    assert binding.scatter(array) is array


@pytest.mark.parametrize("array", [np.arange(3), np.array(1), np.zeros((4, 3))])
def test_a_wrong_width_is_refused(array: Any) -> None:
    with pytest.raises(ContractError, match=r"\[\.\.\., 4\]"):
        Binding(there=THERE, wanted=list(reversed(THERE)), feature="x").select(array)
