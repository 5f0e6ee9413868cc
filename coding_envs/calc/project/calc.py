"""Sums and lists: small functions of numbers, sequences and text, each without a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Numbers ----------------------------------------------------------------------


def clamp(x: float, low: float, high: float) -> float:
    """The nearest number to x from low to high. ValueError if low is above high."""
    if low > high:
        raise ValueError(f"low {low} is above high {high}")
    return max(low, min(x, high))


def gcd(a: int, b: int) -> int:
    """The greatest common divisor, never negative; of 0 and 0 it is 0."""
    while b != 0:
        a, b = b, a % b
    return abs(a)


def lcm(a: int, b: int) -> int:
    """The least common multiple, never negative; with a 0 it is 0."""
    if a == 0 or b == 0:
        return 0
    return abs(a * b) // gcd(a, b)


def is_prime(n: int) -> bool:
    """Whether n has exactly two divisors."""
    if n < 2 or (n > 2 and n % 2 == 0):
        return False
    return all(n % d != 0 for d in range(3, n, 2) if d * d <= n)


def prime_factors(n: int) -> list[int]:
    """The prime factors in rising order, each as often as it divides n. ValueError below 1."""
    if n < 1:
        raise ValueError(f"got {n}, expected at least 1")
    factors = []
    for d in range(2, n + 1):
        while n % d == 0:
            factors.append(d)
            n = n // d
    return factors


def fibonacci(n: int) -> list[int]:
    """The first n Fibonacci numbers: 0, 1, 1, 2, ..."""
    numbers = [0, 1]
    for i in range(2, n):
        numbers.append(numbers[i - 1] + numbers[i - 2])
    return numbers[: max(n, 0)]


def binomial(n: int, k: int) -> int:
    """The ways to choose k of n; 0 if k is below 0 or above n."""
    if k < 0 or k > n:
        return 0
    ways = 1
    for i in range(min(k, n - k)):
        ways = ways * (n - i) // (i + 1)
    return ways


def isqrt(n: int) -> int:
    """The largest integer whose square is at most n. ValueError below 0."""
    if n < 0:
        raise ValueError(f"got {n}, expected at least 0")
    low, high = 0, n + 1
    for _ in range(n.bit_length() + 1):
        middle = (low + high) // 2
        if middle * middle <= n:
            low = middle
        else:
            high = middle
    return low


def digits(n: int, base: int = 10) -> list[int]:
    """The digits of n >= 0, the most significant first; of 0 it is [0]. ValueError for a base below 2."""
    if n < 0 or base < 2:
        raise ValueError(f"got n {n} and base {base}, expected n >= 0 and base >= 2")
    found = [n % base]
    while n >= base:
        n = n // base
        found.append(n % base)
    return found[::-1]


def from_digits(values: Sequence[int], base: int = 10) -> int:
    """The number that has these digits. ValueError for one that is no digit of the base."""
    n = 0
    for value in values:
        if value < 0 or value >= base:
            raise ValueError(f"{value} is no digit in base {base}")
        n = n * base + value
    return n


def polynomial(coefficients: Sequence[float], x: float) -> float:
    """The polynomial's value at x; the coefficient of the highest power first."""
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def derivative(coefficients: Sequence[float]) -> list[float]:
    """The coefficients of the derivative, highest power first; of a constant it is [0]."""
    degree = len(coefficients) - 1
    if degree < 1:
        return [0]
    return [c * (degree - i) for i, c in enumerate(coefficients[:-1])]


def compound(principal: float, rate: float, years: int, per_year: int = 1) -> float:
    """What principal has grown to after years at a yearly rate (0.05 is 5 %), paid per_year times a year."""
    if years < 0 or per_year < 1:
        raise ValueError(f"got {years} years, paid {per_year} times a year")
    return principal * (1 + rate / per_year) ** (years * per_year)


# Statistics -------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean. ValueError for no values."""
    if len(values) == 0:
        raise ValueError("the mean of nothing")
    return sum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """The middle value, of an even number the mean of the middle two. ValueError for no values."""
    if len(values) == 0:
        raise ValueError("the median of nothing")
    ordered, middle = sorted(values), len(values) // 2
    if len(values) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def mode(values: Sequence[float]) -> float:
    """The most frequent value; of several the smallest. ValueError for no values."""
    if len(values) == 0:
        raise ValueError("the mode of nothing")
    best, times = values[0], 0
    for value in sorted(set(values)):
        count = sum(1 for other in values if other == value)
        if count > times:
            best, times = value, count
    return best


def variance(values: Sequence[float], *, sample: bool = False) -> float:
    """The mean squared distance from the mean; of a sample, over one value less. ValueError for too few values."""
    if len(values) < (2 if sample else 1):
        raise ValueError(f"the variance of {len(values)} values")
    middle = mean(values)
    count = len(values) - 1 if sample else len(values)
    return sum((value - middle) ** 2 for value in values) / count


def percentile(values: Sequence[float], p: float) -> float:
    """The value below which p percent lie, linear between neighbours. ValueError for no values, or p not in 0..100."""
    if len(values) == 0 or p < 0 or p > 100:
        raise ValueError(f"the {p}th percentile of {len(values)} values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * p / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def moving_average(values: Sequence[float], width: int) -> list[float]:
    """The mean of every width neighbours, in order. ValueError for a width below 1."""
    if width < 1:
        raise ValueError(f"got the width {width}, expected at least 1")
    return [mean(values[i : i + width]) for i in range(len(values) - width + 1)]


# Sequences --------------------------------------------------------------------


def running_max(values: Sequence[float]) -> list[float]:
    """For each place the largest value up to there."""
    largest: list[float] = []
    for i, value in enumerate(values):
        largest.append(value if i == 0 else max(value, largest[i - 1]))
    return largest


def position(ordered: Sequence[float], x: float) -> int:
    """The first place where x can be put in and the sequence stays in order."""
    low, high = 0, len(ordered)
    for _ in range(len(ordered) + 1):
        middle = (low + high) // 2
        if low < high and ordered[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def merge_sorted(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """All values of two ordered sequences, in order."""
    merged: list[float] = []
    i = j = 0
    for _ in range(len(a) + len(b)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged


def merge_intervals(intervals: Sequence[Sequence[float]]) -> list[list[float]]:
    """The same points in the fewest intervals [start, end], in order; those that touch become one."""
    merged: list[list[float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """How long two intervals [start, end] are both on; 0 if never."""
    start, end = max(a[0], b[0]), min(a[1], b[1])
    return end - start if end > start else 0


def chunks(values: Sequence[float], size: int) -> list[list[float]]:
    """The values in lists of this size, the last perhaps shorter. ValueError for a size below 1."""
    if size < 1:
        raise ValueError(f"got the size {size}, expected at least 1")
    return [list(values[i : i + size]) for i in range(0, len(values), size)]


def rotate(values: Sequence[float], by: int) -> list[float]:
    """The values moved this many places to the right, round the end; below 0 to the left."""
    if len(values) == 0:
        return []
    cut = len(values) - by % len(values)
    return [*values[cut:], *values[:cut]]


def transpose(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Rows as columns. ValueError if they are not equally long."""
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows):
        raise ValueError("the rows are not equally long")
    return [[row[column] for row in rows] for column in range(width)]


def product(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> list[list[float]]:
    """The matrix product. ValueError if a has not as many columns as b has rows."""
    if any(len(row) != len(b) for row in a):
        raise ValueError(f"b has {len(b)} rows, and a not as many columns")
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in transpose(b)] for row in a]


# Dates and text ---------------------------------------------------------------


def is_leap_year(year: int) -> bool:
    """Whether the year has a 29th of February."""
    return (year % 4 == 0 and year % 100 != 0) or year % 400 == 0


def days_in_month(year: int, month: int) -> int:
    """How many days the month has, 1 for January. ValueError for one that is not from 1 to 12."""
    if month < 1 or month > 12:
        raise ValueError(f"got the month {month}, expected 1 to 12")
    if month == 2:
        return 29 if is_leap_year(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def day_of_year(year: int, month: int, day: int) -> int:
    """Which day of the year it is, 1 for the first of January. ValueError for a date that is not there."""
    if day < 1 or day > days_in_month(year, month):
        raise ValueError(f"there is no {year}-{month:02}-{day:02}")
    return sum(days_in_month(year, before) for before in range(1, month)) + day


ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip


def to_roman(n: int) -> str:
    """The Roman numeral. ValueError for a number that is not from 1 to 3999."""
    if n < 1 or n > 3999:
        raise ValueError(f"got {n}, expected 1 to 3999")
    words = ""
    for value, letters in ROMAN:
        words += letters * (n // value)
        n = n % value
    return words


def from_roman(words: str) -> int:
    """The number of a Roman numeral; a smaller letter before a larger one is taken off."""
    worths = {letters: value for value, letters in ROMAN}
    worth = [worths[letter] for letter in words.upper()]
    n = 0
    for i, value in enumerate(worth):
        is_less = i + 1 < len(worth) and value < worth[i + 1]
        n += -value if is_less else value
    return n


def format_duration(seconds: int) -> str:
    """As in 1h02m03s; hours, then minutes are left out while they are 0. ValueError below 0."""
    if seconds < 0:
        raise ValueError(f"got {seconds} s, expected at least 0")
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours > 0:
        return f"{hours}h{minutes:02}m{seconds % 60:02}s"
    return f"{minutes}m{seconds % 60:02}s" if minutes > 0 else f"{seconds}s"


def parse_duration(words: str) -> int:
    """The seconds of what is written as 1h30m, 90s or 2m. ValueError for anything else."""
    seconds, number = 0, ""
    for letter in words:
        if letter.isdigit():
            number += letter
        elif letter in "hms" and number != "":
            seconds += int(number) * (3600 if letter == "h" else 60 if letter == "m" else 1)
            number = ""
        else:
            raise ValueError(f"{words!r} is no duration")
    if number != "" or words == "":
        raise ValueError(f"{words!r} is no duration")
    return seconds


def evaluate(expression: str) -> float:
    """The value of a sum such as 2 * (3 + 4) - -1 / 2, read as in school. ValueError for what is none."""
    tokens = expression.replace("(", " ( ").replace(")", " ) ")
    for sign in "+-*/":
        tokens = tokens.replace(sign, f" {sign} ")
    value, rest = _sum(tokens.split())
    if len(rest) > 0:
        raise ValueError(f"got {rest[0]!r} in {expression!r}")
    return value


def _sum(tokens: list[str]) -> tuple[float, list[str]]:
    value, tokens = _term(tokens)
    while tokens and tokens[0] in ("+", "-"):
        other, rest = _term(tokens[1:])
        value = value + other if tokens[0] == "+" else value - other
        tokens = rest
    return value, tokens


def _term(tokens: list[str]) -> tuple[float, list[str]]:
    value, tokens = _factor(tokens)
    while tokens and tokens[0] in ("*", "/"):
        other, rest = _factor(tokens[1:])
        value = value * other if tokens[0] == "*" else value / other
        tokens = rest
    return value, tokens


def _factor(tokens: list[str]) -> tuple[float, list[str]]:
    if len(tokens) == 0:
        raise ValueError("the sum breaks off")
    first, rest = tokens[0], tokens[1:]
    if first == "-":
        value, rest = _factor(rest)
        return -value, rest
    if first == "(":
        value, rest = _sum(rest)
        if len(rest) == 0 or rest[0] != ")":
            raise ValueError("a bracket is not closed")
        return value, rest[1:]
    return float(first), rest


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f is 0 between low and high, to 1e-9, by halving. ValueError if f does not change its sign there."""
    if f(low) * f(high) > 0:
        raise ValueError(f"f has the same sign at {low} and {high}")
    for _ in range(100):
        middle = (low + high) / 2
        if f(low) * f(middle) <= 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2
