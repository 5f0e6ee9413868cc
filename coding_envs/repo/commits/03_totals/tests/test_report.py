from __future__ import annotations

from tally.entries import parse_text
from tally.report import table, totals

TEXT = "2024-01-05 food 12.50\n2024-01-06 rent 700\n2024-01-09 food -3.20\n"


def test_totals_by_category():
    assert totals(parse_text(TEXT)) == {"food": 930, "rent": 70000}


def test_no_entries_have_no_totals():
    assert totals([]) == {}


def test_the_table_ends_with_the_sum_of_all():
    assert table({"rent": 70000}).splitlines()[-1] == "total  700.00"
    assert table({}) == "total  0.00"


def test_amounts_stand_one_below_the_other():
    lines = table({"rent": 70000, "tea": 420}).splitlines()
    assert lines == ["rent   700.00", "tea      4.20", "total  704.20"]
