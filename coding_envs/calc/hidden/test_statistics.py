"""Statistics: what calc must do, beyond what it shows."""

import pytest

import calc


def test_the_mean():
    assert calc.mean([1, 2, 6]) == 3
    assert calc.mean([1, 2]) == 1.5


def test_the_mean_of_one_value_is_it():
    assert calc.mean([4]) == 4


def test_the_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="mean of nothing"):
        calc.mean([])


def test_the_median_of_an_odd_number():
    assert calc.median([9, 1, 5]) == 5
    assert calc.median([7]) == 7


def test_the_median_of_an_even_number():
    assert calc.median([4, 1, 3, 10]) == 3.5
    assert calc.median([2, 8]) == 5


def test_the_median_of_nothing_is_refused():
    with pytest.raises(ValueError, match="median of nothing"):
        calc.median([])


def test_the_median_leaves_its_values_as_they_are():
    values = [3, 1, 2]
    calc.median(values)
    assert values == [3, 1, 2]


def test_the_mode_is_the_most_frequent():
    assert calc.mode([1, 3, 3, 2]) == 3
    assert calc.mode([5, 5, 1]) == 5


def test_the_mode_of_several_is_the_smallest():
    assert calc.mode([8, 2, 8, 2, 5]) == 2


def test_the_mode_of_one_value_is_it():
    assert calc.mode([6]) == 6


def test_the_mode_of_nothing_is_refused():
    with pytest.raises(ValueError, match="mode of nothing"):
        calc.mode([])


def test_the_variance_of_all():
    assert calc.variance([2, 4, 4, 4, 5, 5, 7, 9]) == 4


def test_the_variance_of_a_sample():
    assert calc.variance([1, 2, 3, 4], sample=True) == pytest.approx(5 / 3)
    assert calc.variance([1, 3], sample=True) == 2


def test_the_variance_of_one_value_is_zero():
    assert calc.variance([7]) == 0


def test_the_variance_of_too_few_is_refused():
    with pytest.raises(ValueError, match="variance of 0 values"):
        calc.variance([])
    with pytest.raises(ValueError, match="variance of 1 values"):
        calc.variance([3], sample=True)


def test_percentiles_at_the_ends():
    assert calc.percentile([30, 10, 20], 0) == 10
    assert calc.percentile([30, 10, 20], 100) == 30


def test_percentiles_on_a_value():
    assert calc.percentile([1, 2, 3, 4, 5], 25) == 2
    assert calc.percentile([1, 2, 3, 4, 5], 50) == 3


def test_percentiles_between_values():
    assert calc.percentile([10, 20, 40, 80], 50) == 30
    assert calc.percentile([10, 20, 40, 80], 90) == pytest.approx(68)


def test_percentiles_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="50th percentile of 0"):
        calc.percentile([], 50)
    with pytest.raises(ValueError, match="-1th percentile"):
        calc.percentile([1], -1)
    with pytest.raises(ValueError, match="101th percentile"):
        calc.percentile([1], 101)


def test_the_moving_average():
    assert calc.moving_average([1, 3, 5, 10], 2) == [2, 4, 7.5]
    assert calc.moving_average([3, 6, 9], 3) == [6]


def test_the_moving_average_of_width_one_is_the_values():
    assert calc.moving_average([4, 1, 2], 1) == [4, 1, 2]


def test_the_moving_average_of_too_few_is_empty():
    assert calc.moving_average([1, 2], 3) == []
    assert calc.moving_average([], 1) == []


def test_the_moving_average_refuses_no_width():
    with pytest.raises(ValueError, match="got the width 0"):
        calc.moving_average([1], 0)
