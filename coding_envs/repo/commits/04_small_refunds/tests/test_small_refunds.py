from __future__ import annotations

from tally.entries import parse_line, parse_text
from tally.money import format_amount, parse_amount
from tally.report import totals


def test_less_than_one_can_be_negative():
    assert parse_amount("-0.50") == -50
    assert parse_amount("-0.05") == -5


def test_one_decimal_is_enough():
    assert parse_amount("-0.5") == -50


def test_it_is_written_as_it_was_read():
    assert [format_amount(parse_amount(words)) for words in ("-0.01", "-0.99")] == ["-0.01", "-0.99"]


def test_an_entry_keeps_its_sign():
    assert parse_line("2024-01-14 food -0.25 bottle").cents == -25


def test_a_small_refund_makes_the_total_smaller():
    assert totals(parse_text("2024-01-14 food 2\n2024-01-14 food -0.25\n")) == {"food": 175}
