"""Dates and text: what calc must do, beyond what it shows."""

import pytest

import calc


def test_every_fourth_year_is_a_leap_year():
    assert [year for year in range(2010, 2022) if calc.is_leap_year(year)] == [2012, 2016, 2020]


def test_a_century_is_no_leap_year():
    assert not calc.is_leap_year(1900)
    assert not calc.is_leap_year(2100)


def test_every_fourth_century_is_a_leap_year():
    assert calc.is_leap_year(1600)
    assert calc.is_leap_year(2000)


def test_the_days_of_every_month():
    assert [calc.days_in_month(2023, m) for m in range(1, 13)] == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def test_february_of_a_leap_year():
    assert calc.days_in_month(2024, 2) == 29


def test_months_that_are_not_there():
    with pytest.raises(ValueError, match="got the month 0"):
        calc.days_in_month(2023, 0)
    with pytest.raises(ValueError, match="got the month 13"):
        calc.days_in_month(2023, 13)


def test_the_first_and_the_last_day_of_the_year():
    assert calc.day_of_year(2023, 1, 1) == 1
    assert calc.day_of_year(2023, 12, 31) == 365
    assert calc.day_of_year(2024, 12, 31) == 366


def test_a_day_in_march_depends_on_the_year():
    assert calc.day_of_year(2023, 3, 1) == 60
    assert calc.day_of_year(2024, 3, 1) == 61


def test_days_that_are_not_there():
    with pytest.raises(ValueError, match="there is no 2023-02-29"):
        calc.day_of_year(2023, 2, 29)
    with pytest.raises(ValueError, match="there is no 2023-05-00"):
        calc.day_of_year(2023, 5, 0)


def test_roman_numerals():
    assert calc.to_roman(1994) == "MCMXCIV"
    assert calc.to_roman(2023) == "MMXXIII"
    assert calc.to_roman(8) == "VIII"


def test_the_first_and_the_last_roman_numeral():
    assert calc.to_roman(1) == "I"
    assert calc.to_roman(3999) == "MMMCMXCIX"


def test_numbers_without_a_roman_numeral():
    with pytest.raises(ValueError, match="got 0, expected 1 to 3999"):
        calc.to_roman(0)
    with pytest.raises(ValueError, match="got 4000"):
        calc.to_roman(4000)


def test_roman_numerals_are_read():
    assert calc.from_roman("MCMXCIV") == 1994
    assert calc.from_roman("VIII") == 8
    assert calc.from_roman("xl") == 40
    assert calc.from_roman("I") == 1
    assert calc.from_roman("") == 0


def test_roman_numerals_there_and_back():
    assert [calc.from_roman(calc.to_roman(n)) for n in range(1, 120)] == list(range(1, 120))


def test_durations_are_written():
    assert calc.format_duration(3723) == "1h02m03s"
    assert calc.format_duration(36610) == "10h10m10s"
    assert calc.format_duration(125) == "2m05s"


def test_short_durations_are_written_short():
    assert calc.format_duration(0) == "0s"
    assert calc.format_duration(59) == "59s"
    assert calc.format_duration(60) == "1m00s"
    assert calc.format_duration(3600) == "1h00m00s"
    assert calc.format_duration(3599) == "59m59s"
    assert calc.format_duration(1) == "1s"


def test_negative_durations_are_refused():
    with pytest.raises(ValueError, match="got -1 s"):
        calc.format_duration(-1)


def test_durations_are_read():
    assert calc.parse_duration("1h30m") == 5400
    assert calc.parse_duration("90s") == 90
    assert calc.parse_duration("2m") == 120
    assert calc.parse_duration("1h2m3s") == 3723
    assert calc.parse_duration("10s20s") == 30


def test_what_is_no_duration_is_refused():
    for words in ("", "12", "h", "1h2", "3d", "1.5h"):
        with pytest.raises(ValueError, match="is no duration"):
            calc.parse_duration(words)


def test_sums_are_worked_out():
    assert calc.evaluate("1 + 2 - 4") == -1
    assert calc.evaluate("7") == 7
    assert calc.evaluate("2.5*2") == 5


def test_products_bind_more_than_sums():
    assert calc.evaluate("2 + 3 * 4") == 14
    assert calc.evaluate("10 - 8 / 4") == 8


def test_what_stands_left_comes_first():
    assert calc.evaluate("10 - 3 - 2") == 5
    assert calc.evaluate("24 / 4 / 2") == 3
    assert calc.evaluate("12 / 3 * 2") == 8


def test_brackets_come_first_of_all():
    assert calc.evaluate("2 * (3 + 4)") == 14
    assert calc.evaluate("((2))*(1+(2-5))") == -4


def test_a_minus_may_stand_before_anything():
    assert calc.evaluate("-3 + 5") == 2
    assert calc.evaluate("2 - -3") == 5
    assert calc.evaluate("-(2 + 3) * 2") == -10


def test_what_is_no_sum_is_refused():
    for words in ("", "1 +", "(1 + 2", "1 2", "1 + )", "two", "* 3", "(1 2"):
        with pytest.raises(ValueError, match=r".+"):
            calc.evaluate(words)


def test_what_is_left_over_is_named():
    with pytest.raises(ValueError, match=r"got '\)' in '1 \)'"):
        calc.evaluate("1 )")


def test_brackets_must_be_closed():
    with pytest.raises(ValueError, match="a bracket is not closed"):
        calc.evaluate("(1 + 2")
    with pytest.raises(ValueError, match="a bracket is not closed"):
        calc.evaluate("(1 2)")


def test_a_sum_must_not_break_off():
    with pytest.raises(ValueError, match="the sum breaks off"):
        calc.evaluate("1 +")
