from __future__ import annotations

from datetime import date

import pytest

from tally.entries import EntryError, parse_line, parse_text


def test_a_line_is_day_category_and_amount():
    entry = parse_line("2024-01-06 rent 700")
    assert (entry.day, entry.category, entry.cents, entry.note) == (date(2024, 1, 6), "rent", 70000, "")


def test_what_follows_is_the_note():
    assert parse_line("2024-01-05 groceries 12.50 bread and milk").note == "bread and milk"


def test_a_text_is_read_in_order():
    entries = parse_text("2024-01-05 food 1\n2024-01-04 rent 2\n")
    assert [(entry.category, entry.cents) for entry in entries] == [("food", 100), ("rent", 200)]


def test_what_is_no_entry_is_refused():
    with pytest.raises(EntryError, match="no day, category and amount"):
        parse_line("2024-01-05 food")
    with pytest.raises(EntryError, match="'yesterday' is no day"):
        parse_line("yesterday food 1")
    with pytest.raises(EntryError, match="'much' is no amount"):
        parse_line("2024-01-05 food much")
