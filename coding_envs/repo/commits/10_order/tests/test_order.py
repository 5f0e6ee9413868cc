from __future__ import annotations

from tally.cli import report
from tally.entries import parse_text
from tally.report import totals
from tally.select import of_category

TEXT = "2024-01-05 Tea 4\n2024-01-06 rent 700\n2024-01-07 tea 5\n2024-01-08 books 9\n"


def test_the_largest_total_comes_first():
    assert list(totals(parse_text("2024-01-05 tea 4\n2024-01-06 rent 700\n"))) == ["rent", "tea"]


def test_equal_totals_come_by_name():
    assert list(totals(parse_text("2024-01-05 tea 9\n2024-01-06 books 9\n"))) == ["books", "tea"]


def test_refunds_come_last():
    assert list(totals(parse_text("2024-01-05 sold -4\n2024-01-06 tea 1\n"))) == ["tea", "sold"]


def test_upper_and_lower_case_are_one_category():
    assert totals(parse_text(TEXT)) == {"rent": 70000, "books": 900, "tea": 900}


def test_a_report_is_in_that_order():
    assert [line.split()[0] for line in report(TEXT).splitlines()] == ["rent", "books", "tea", "total"]


def test_a_category_is_selected_in_either_case():
    assert [entry.cents for entry in of_category(parse_text(TEXT), "TEA")] == [400, 500]
    assert [entry.cents for entry in of_category(parse_text(TEXT), "tea")] == [400, 500]
