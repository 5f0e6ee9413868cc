from __future__ import annotations

import pytest

from tally.money import AmountError, format_amount, parse_amount


def test_amounts_are_read_as_cents():
    assert parse_amount("12") == 1200
    assert parse_amount("12.5") == 1250
    assert parse_amount("12.05") == 1205
    assert parse_amount(" 0.99 ") == 99


def test_negative_amounts_are_read():
    assert parse_amount("-12.50") == -1250
    assert parse_amount("-3") == -300


def test_what_is_no_amount_is_refused():
    for words in ("", "x", "1.234", "1.", ".5", "--2", "1.2.3"):
        with pytest.raises(AmountError):
            parse_amount(words)


def test_amounts_are_written_with_two_decimals():
    assert format_amount(1250) == "12.50"
    assert format_amount(5) == "0.05"
    assert format_amount(0) == "0.00"


def test_negative_amounts_are_written():
    assert format_amount(-50) == "-0.50"
    assert format_amount(-1205) == "-12.05"
