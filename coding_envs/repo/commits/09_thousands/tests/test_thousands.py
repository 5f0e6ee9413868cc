from __future__ import annotations

from tally.cli import report
from tally.entries import parse_line
from tally.money import format_amount, parse_amount
from tally.report import table


def test_commas_between_thousands_are_read():
    assert parse_amount("1,234.50") == 123450
    assert parse_amount("12,000") == 1200000
    assert parse_amount("-1,234,567.8") == -123456780


def test_an_entry_may_have_them():
    assert parse_line("2024-02-17 rent 1,100 and the garage").cents == 110000


def test_commas_are_written():
    assert format_amount(123450) == "1,234.50"
    assert format_amount(100000000) == "1,000,000.00"


def test_commas_are_written_in_negative_amounts():
    assert format_amount(-123456) == "-1,234.56"


def test_the_table_stays_straight():
    assert table({"rent": 110000, "tea": 420}).splitlines() == ["rent   1,100.00", "tea        4.20", "total  1,104.20"]


def test_what_is_written_can_be_read():
    amounts = [0, 99, -99, 99999, 100000, -100000, 123456789]
    assert [parse_amount(format_amount(cents)) for cents in amounts] == amounts
    assert format_amount(123456789) == "1,234,567.89"


def test_commas_in_a_wrong_place_are_refused_and_those_in_the_right_one_not():
    refused = []
    for words in ("1,23", ",123", "1234,567", "1,2345", "1,,234", "1,234"):
        try:
            parse_amount(words)
        except ValueError:
            refused.append(words)
    assert refused == ["1,23", ",123", "1234,567", "1,2345", "1,,234"]


def test_a_report_has_them():
    assert report("2024-02-17 rent 1,100.00\n") == "rent   1,100.00\ntotal  1,100.00"
