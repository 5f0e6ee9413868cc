from __future__ import annotations

from datetime import date

from tally.cli import report
from tally.entries import parse_text

TEXT = "2024-03-01 food 3.5 bread\n2024-03-02 Rent 1,100\n"


def csv_of(text):
    from tally.export import to_csv

    return to_csv(parse_text(text))


def test_entries_are_rows():
    assert csv_of(TEXT) == "day,category,amount,note\n2024-03-01,food,3.50,bread\n2024-03-02,Rent,1100.00,\n"


def test_no_entries_are_a_header():
    assert csv_of("") == "day,category,amount,note\n"


def test_negative_amounts_have_their_sign():
    assert csv_of("2024-03-01 food -1,000.05\n").splitlines()[1] == "2024-03-01,food,-1000.05,"


def test_a_note_with_commas_is_one_field():
    assert csv_of("2024-03-01 food 1 bread, milk\n").splitlines()[1] == '2024-03-01,food,1.00,"bread, milk"'


def test_a_quote_is_doubled():
    assert csv_of('2024-03-01 books 9 the "Iliad"\n').splitlines()[1] == '2024-03-01,books,9.00,"the ""Iliad"""'


def test_a_report_can_be_csv():
    assert report(TEXT, date(2024, 3, 2), as_csv=True) == "day,category,amount,note\n2024-03-02,Rent,1100.00,"

