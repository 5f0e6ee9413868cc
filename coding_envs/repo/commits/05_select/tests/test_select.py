from __future__ import annotations

from datetime import date

from tally.entries import parse_text
from tally.select import between, of_category

TEXT = "2024-01-01 a 1\n2024-01-15 b 2\n2024-02-01 a 3\n"


def cents(entries):
    return [entry.cents for entry in entries]


def test_without_days_all_are_taken():
    assert cents(between(parse_text(TEXT))) == [100, 200, 300]


def test_from_a_day_on():
    assert cents(between(parse_text(TEXT), first=date(2024, 1, 15))) == [200, 300]


def test_up_to_a_day():
    assert cents(between(parse_text(TEXT), last=date(2024, 1, 20))) == [100, 200]


def test_of_one_category():
    assert cents(of_category(parse_text(TEXT), "a")) == [100, 300]
    assert of_category(parse_text(TEXT), "c") == []
