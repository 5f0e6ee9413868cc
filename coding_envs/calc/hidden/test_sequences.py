"""Sequences: what calc must do, beyond what it shows."""

import pytest

import calc


def test_the_running_maximum():
    assert calc.running_max([3, 1, 4, 1, 5, 2]) == [3, 3, 4, 4, 5, 5]


def test_the_running_maximum_of_negative_numbers():
    assert calc.running_max([-5, -7, -2]) == [-5, -5, -2]


def test_the_running_maximum_of_nothing_is_nothing():
    assert calc.running_max([]) == []


def test_a_value_is_found_where_it_is():
    assert [calc.position([10, 20, 30, 40], x) for x in (10, 20, 30, 40)] == [0, 1, 2, 3]


def test_a_value_between_others_has_its_place():
    assert [calc.position([10, 20, 30], x) for x in (5, 15, 25, 35)] == [0, 1, 2, 3]


def test_of_equal_values_the_first_is_found():
    assert calc.position([1, 2, 2, 2, 3], 2) == 1


def test_in_nothing_every_place_is_the_first():
    assert calc.position([], 4) == 0
    assert calc.position([1], 4) == 1


def test_two_sequences_are_merged():
    assert calc.merge_sorted([1, 4, 6], [2, 3, 5, 7, 8]) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert calc.merge_sorted([5, 6, 7], [1, 2]) == [1, 2, 5, 6, 7]


def test_merged_with_nothing_a_sequence_stays():
    assert calc.merge_sorted([], [1, 2]) == [1, 2]
    assert calc.merge_sorted([1, 2], []) == [1, 2]
    assert calc.merge_sorted([], []) == []


def test_of_equal_values_those_of_the_first_sequence_come_first():
    merged = calc.merge_sorted([1, 2], [1.0, 2.0])
    assert [type(value) for value in merged] == [int, float, int, float]


def test_intervals_that_overlap_become_one():
    assert calc.merge_intervals([[1, 4], [3, 6], [8, 9]]) == [[1, 6], [8, 9]]


def test_intervals_that_touch_become_one():
    assert calc.merge_intervals([[1, 2], [2, 3]]) == [[1, 3]]


def test_an_interval_within_another_is_lost_in_it():
    assert calc.merge_intervals([[1, 10], [2, 3], [4, 5]]) == [[1, 10]]


def test_intervals_are_put_in_order():
    assert calc.merge_intervals([[5, 6], [1, 2]]) == [[1, 2], [5, 6]]
    assert calc.merge_intervals([]) == []


def test_merging_leaves_the_intervals_as_they_are():
    given = [[1, 4], [3, 6]]
    calc.merge_intervals(given)
    assert given == [[1, 4], [3, 6]]


def test_how_long_two_intervals_overlap():
    assert calc.overlap([0, 5], [3, 9]) == 2
    assert calc.overlap([3, 9], [0, 5]) == 2
    assert calc.overlap([0, 10], [4, 6]) == 2


def test_intervals_apart_do_not_overlap():
    assert calc.overlap([0, 1], [3, 4]) == 0
    assert calc.overlap([3, 4], [0, 1]) == 0
    assert calc.overlap([0, 3], [3, 4]) == 0


def test_chunks_of_one_size():
    assert calc.chunks([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]


def test_the_last_chunk_may_be_shorter():
    assert calc.chunks([1, 2, 3, 4, 5], 3) == [[1, 2, 3], [4, 5]]
    assert calc.chunks([1], 4) == [[1]]


def test_chunks_of_one_and_of_nothing():
    assert calc.chunks([7, 8], 1) == [[7], [8]]
    assert calc.chunks([], 3) == []


def test_chunks_refuse_no_size():
    with pytest.raises(ValueError, match="got the size 0"):
        calc.chunks([1], 0)


def test_values_are_rotated_to_the_right():
    assert calc.rotate([1, 2, 3, 4], 1) == [4, 1, 2, 3]
    assert calc.rotate([1, 2, 3, 4], 3) == [2, 3, 4, 1]


def test_values_are_rotated_to_the_left():
    assert calc.rotate([1, 2, 3, 4], -1) == [2, 3, 4, 1]


def test_a_rotation_goes_round():
    assert calc.rotate([1, 2, 3], 3) == [1, 2, 3]
    assert calc.rotate([1, 2, 3], 7) == [3, 1, 2]
    assert calc.rotate([1, 2, 3], 0) == [1, 2, 3]


def test_nothing_is_rotated_to_nothing():
    assert calc.rotate([], 2) == []


def test_rows_become_columns():
    assert calc.transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]


def test_no_rows_are_no_columns():
    assert calc.transpose([]) == []


def test_rows_of_different_length_are_refused():
    with pytest.raises(ValueError, match="not equally long"):
        calc.transpose([[1, 2], [3]])
    with pytest.raises(ValueError, match="not equally long"):
        calc.transpose([[1], [2, 3]])


def test_the_product_of_two_matrices():
    assert calc.product([[1, 2], [3, 4]], [[5, 6], [7, 8]]) == [[19, 22], [43, 50]]
    assert calc.product([[1, 2, 3]], [[4], [5], [6]]) == [[32]]


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="b has 1 rows"):
        calc.product([[1, 2]], [[1, 2]])
