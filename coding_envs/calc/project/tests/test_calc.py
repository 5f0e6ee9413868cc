"""A test of each kind; the whole suite is elsewhere."""

import calc


def test_numbers():
    assert calc.clamp(5, 0, 10) == 5
    assert calc.gcd(12, 18) == 6
    assert calc.is_prime(7)
    assert calc.prime_factors(12) == [2, 2, 3]
    assert calc.digits(42) == [4, 2]


def test_statistics():
    assert calc.mean([1, 2, 3]) == 2
    assert calc.median([1, 2, 9]) == 2
    assert calc.mode([1, 2, 2]) == 2


def test_sequences():
    assert calc.merge_sorted([1, 3], [2]) == [1, 2, 3]
    assert calc.chunks([1, 2, 3], 2) == [[1, 2], [3]]
    assert calc.rotate([1, 2, 3], 1) == [3, 1, 2]


def test_dates_and_text():
    assert calc.is_leap_year(2024)
    assert calc.to_roman(14) == "XIV"
    assert calc.format_duration(75) == "1m15s"
    assert calc.evaluate("1 + 2 * 3") == 7
