from __future__ import annotations

import pytest

from tally import report
from tally.entries import parse_text

TEXT = """\
2024-03-01 food:bread 3
2024-03-02 food:fruit:apples 5
2024-03-03 food:fruit 2
2024-03-04 rent 700
2024-03-05 food 1
"""


def test_what_is_below_counts_above():
    sums = report.nested(parse_text(TEXT))
    assert sums["food"] == 1100
    assert sums["food:fruit"] == 700
    assert sums["food:fruit:apples"] == 500
    assert sums["rent"] == 70000


def test_a_category_above_is_there_without_entries_of_its_own():
    assert report.nested(parse_text("2024-03-01 car:fuel 50\n")) == {"car": 5000, "car:fuel": 5000}


def test_each_is_followed_by_those_below_it_the_largest_first():
    assert list(report.nested(parse_text(TEXT))) == [
        "rent", "food", "food:fruit", "food:fruit:apples", "food:bread",
    ]


def test_equal_ones_come_by_name():
    text = "2024-03-01 b:y 1\n2024-03-01 b:x 1\n2024-03-01 a 2\n"
    assert list(report.nested(parse_text(text))) == ["a", "b", "b:x", "b:y"]


def test_only_so_many_levels_are_shown():
    assert report.nested(parse_text(TEXT), depth=1) == {"rent": 70000, "food": 1100}
    assert list(report.nested(parse_text(TEXT), depth=2)) == ["rent", "food", "food:fruit", "food:bread"]


def test_no_levels_are_refused():
    with pytest.raises(ValueError, match="got the depth 0"):
        report.nested([], depth=0)


def test_no_entries_have_no_categories():
    assert report.nested([]) == {}
