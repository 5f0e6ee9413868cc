from __future__ import annotations

from datetime import date

from tally.entries import parse_text
from tally.select import between

TEXT = "2024-01-30 a 1\n2024-01-31 a 2\n2024-01-31 b 3\n2024-02-01 a 4\n"


def cents(first, last):
    return [entry.cents for entry in between(parse_text(TEXT), first, last)]


def test_a_month_has_its_last_day():
    assert cents(date(2024, 1, 1), date(2024, 1, 31)) == [100, 200, 300]


def test_one_day_alone_can_be_selected():
    assert cents(date(2024, 1, 30), date(2024, 1, 30)) == [100]


def test_up_to_a_day_that_has_entries():
    assert cents(None, date(2024, 2, 1)) == [100, 200, 300, 400]
