"""Numbers: what calc must do, beyond what it shows."""

import pytest

import calc


def test_clamp_keeps_what_lies_between():
    assert calc.clamp(5, 0, 10) == 5


def test_clamp_stops_at_both_ends():
    assert calc.clamp(-3, 0, 10) == 0
    assert calc.clamp(13, 0, 10) == 10


def test_clamp_takes_a_single_point():
    assert calc.clamp(3, 7, 7) == 7


def test_clamp_refuses_ends_the_wrong_way_round():
    with pytest.raises(ValueError, match="low 2 is above high 1"):
        calc.clamp(0, 2, 1)


def test_gcd_of_two_numbers():
    assert calc.gcd(12, 18) == 6
    assert calc.gcd(17, 5) == 1


def test_gcd_with_zero_is_the_other():
    assert calc.gcd(0, 9) == 9
    assert calc.gcd(9, 0) == 9
    assert calc.gcd(0, 0) == 0


def test_gcd_is_never_negative():
    assert calc.gcd(-12, 18) == 6
    assert calc.gcd(12, -18) == 6


def test_lcm_of_two_numbers():
    assert calc.lcm(4, 6) == 12
    assert calc.lcm(5, 7) == 35


def test_lcm_with_zero_is_zero():
    assert calc.lcm(0, 5) == 0
    assert calc.lcm(5, 0) == 0
    assert calc.lcm(0, 0) == 0


def test_lcm_with_one_is_the_other():
    assert calc.lcm(1, 6) == 6
    assert calc.lcm(6, 1) == 6


def test_lcm_is_never_negative():
    assert calc.lcm(-4, 6) == 12


def test_the_primes_below_fifty():
    primes = [n for n in range(50) if calc.is_prime(n)]
    assert primes == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]


def test_numbers_below_two_are_no_primes():
    assert not calc.is_prime(1)
    assert not calc.is_prime(0)
    assert not calc.is_prime(-7)


def test_a_square_of_a_prime_is_no_prime():
    assert not calc.is_prime(49)
    assert not calc.is_prime(121)


def test_is_prime_says_true_or_false():
    assert calc.is_prime(13) is True
    assert calc.is_prime(15) is False


def test_factors_come_in_order_and_as_often_as_they_divide():
    assert calc.prime_factors(360) == [2, 2, 2, 3, 3, 5]


def test_a_prime_is_its_own_factor():
    assert calc.prime_factors(13) == [13]
    assert calc.prime_factors(2) == [2]


def test_one_has_no_factors():
    assert calc.prime_factors(1) == []


def test_zero_cannot_be_factored():
    with pytest.raises(ValueError, match="got 0, expected at least 1"):
        calc.prime_factors(0)


def test_fibonacci_begins_with_zero_and_one():
    assert calc.fibonacci(8) == [0, 1, 1, 2, 3, 5, 8, 13]


def test_few_fibonacci_numbers():
    assert calc.fibonacci(0) == []
    assert calc.fibonacci(1) == [0]
    assert calc.fibonacci(2) == [0, 1]
    assert calc.fibonacci(3) == [0, 1, 1]


def test_fewer_than_no_fibonacci_numbers_are_none():
    assert calc.fibonacci(-1) == []


def test_a_row_of_pascals_triangle():
    assert [calc.binomial(6, k) for k in range(7)] == [1, 6, 15, 20, 15, 6, 1]


def test_choosing_none_or_all_is_one_way():
    assert calc.binomial(5, 0) == 1
    assert calc.binomial(5, 5) == 1
    assert calc.binomial(0, 0) == 1


def test_more_than_there_are_cannot_be_chosen():
    assert calc.binomial(3, 4) == 0
    assert calc.binomial(3, -1) == 0


def test_isqrt_of_squares():
    assert [calc.isqrt(n * n) for n in range(12)] == list(range(12))


def test_isqrt_rounds_down():
    assert [calc.isqrt(n) for n in (2, 3, 8, 15, 24, 99)] == [1, 1, 2, 3, 4, 9]


def test_isqrt_of_a_large_number():
    assert calc.isqrt(10**30 - 1) == 10**15 - 1


def test_isqrt_refuses_negative_numbers():
    with pytest.raises(ValueError, match="got -1"):
        calc.isqrt(-1)


def test_digits_in_ten():
    assert calc.digits(4096) == [4, 0, 9, 6]
    assert calc.digits(10) == [1, 0]
    assert calc.digits(7) == [7]


def test_digits_of_zero():
    assert calc.digits(0) == [0]


def test_digits_in_other_bases():
    assert calc.digits(10, 2) == [1, 0, 1, 0]
    assert calc.digits(255, 16) == [15, 15]


def test_digits_refuse_what_cannot_be_written():
    with pytest.raises(ValueError, match="got n -1"):
        calc.digits(-1)
    with pytest.raises(ValueError, match="base 1"):
        calc.digits(3, 1)


def test_a_number_of_its_digits():
    assert calc.from_digits([4, 0, 9, 6]) == 4096
    assert calc.from_digits([1, 0, 1, 0], 2) == 10
    assert calc.from_digits([]) == 0


def test_digits_there_and_back():
    assert [calc.from_digits(calc.digits(n, 7), 7) for n in range(60)] == list(range(60))


def test_what_is_no_digit_is_refused():
    with pytest.raises(ValueError, match="2 is no digit in base 2"):
        calc.from_digits([1, 2], 2)
    with pytest.raises(ValueError, match="-1 is no digit"):
        calc.from_digits([-1])


def test_a_polynomial_at_a_point():
    assert calc.polynomial([2, -3, 5], 4) == 25
    assert calc.polynomial([1, 0, 0], -3) == 9


def test_a_polynomial_at_zero_is_its_last_coefficient():
    assert calc.polynomial([4, 3, 7], 0) == 7
    assert calc.polynomial([], 3) == 0


def test_the_derivative_of_a_cubic():
    assert calc.derivative([2, -3, 5, 1]) == [6, -6, 5]


def test_the_derivative_of_a_line_is_its_slope():
    assert calc.derivative([4, 9]) == [4]


def test_the_derivative_of_a_constant_is_zero():
    assert calc.derivative([4]) == [0]
    assert calc.derivative([]) == [0]


def test_compound_interest_once_a_year():
    assert calc.compound(1000, 0.05, 2) == pytest.approx(1102.5)


def test_compound_interest_twice_a_year():
    assert calc.compound(1000, 0.1, 1, 2) == pytest.approx(1102.5)
    assert calc.compound(100, 0.12, 3, 4) == pytest.approx(142.576089)


def test_compound_interest_for_no_years_is_nothing():
    assert calc.compound(70, 0.3, 0) == 70


def test_compound_interest_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="-1 years"):
        calc.compound(1, 0.1, -1)
    with pytest.raises(ValueError, match="paid 0 times"):
        calc.compound(1, 0.1, 1, 0)


def test_a_root_is_found():
    assert calc.root(lambda x: x * x - 2, 0, 2) == pytest.approx(2**0.5, abs=1e-9)


def test_a_root_of_a_falling_function_is_found():
    assert calc.root(lambda x: 3 - x, 0, 10) == pytest.approx(3, abs=1e-9)


def test_a_root_at_an_end_is_found():
    assert calc.root(lambda x: x, 0, 5) == pytest.approx(0, abs=1e-9)
    assert calc.root(lambda x: x, -5, 0) == pytest.approx(0, abs=1e-9)


def test_a_root_needs_a_change_of_sign():
    with pytest.raises(ValueError, match="same sign at 1 and 2"):
        calc.root(lambda x: x, 1, 2)
