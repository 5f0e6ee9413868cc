from __future__ import annotations

import pytest

from tally.entries import parse_text

TEXT = """\
2024-03-01 food 100
2024-02-10 Food 260.50
2024-02-11 tea 5
2024-03-20 food 40
2024-03-21 tea 30
"""
BUDGET = """\
# a month
food 250
Tea 20.00

"""


def test_a_budget_is_read():
    from tally.budget import parse_budget

    assert parse_budget(BUDGET) == {"food": 25000, "tea": 2000}


def test_what_is_left_each_month():
    from tally.budget import left

    assert left(parse_text(TEXT), {"food": 25000, "tea": 2000}) == {
        "2024-02": {"food": -1050, "tea": 1500},
        "2024-03": {"food": 11000, "tea": -1000},
    }


def test_months_come_in_order():
    from tally.budget import left

    assert list(left(parse_text(TEXT), {})) == ["2024-02", "2024-03"]


def test_a_category_without_entries_has_its_whole_budget():
    from tally.budget import left

    assert left(parse_text("2024-02-11 tea 5\n"), {"books": 3000}) == {"2024-02": {"books": 3000}}


def test_too_much_is_said():
    from tally.budget import parse_budget, warnings

    assert warnings(parse_text(TEXT), parse_budget(BUDGET)) == [
        "2024-02: food is over by 10.50",
        "2024-03: tea is over by 10.00",
    ]


def test_exactly_the_budget_is_not_too_much():
    from tally.budget import warnings

    assert warnings(parse_text("2024-02-11 tea 20\n"), {"tea": 2000}) == []


def test_what_is_no_budget_is_refused():
    from tally.budget import BudgetError, parse_budget

    with pytest.raises(BudgetError, match="^line 1: expected a category and an amount$"):
        parse_budget("food\n")
    with pytest.raises(BudgetError, match="^line 2: 'much' is no amount$"):
        parse_budget("tea 1\nfood much\n")


def test_a_category_twice_is_refused():
    from tally.budget import BudgetError, parse_budget

    with pytest.raises(BudgetError, match="^line 3: food is there already$"):
        parse_budget("food 1\n\nFood 2\n")
