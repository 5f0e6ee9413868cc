from __future__ import annotations

import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import UsageError
from hudsim.graders import contains, contains_all, contains_any, exact_match, f1_score, normalize, numeric_match

WORDS = st.sampled_from(["Paris", "is", "The", "a", "an", "capital,", "of", "42", "-5", "it's", "Straße", "कि", "!"])
TEXTS = st.text(max_size=20) | st.lists(WORDS, max_size=6).map(" ".join)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  The Answer is: 42! ", "answer is 42"),
        ("A cat, an owl\tand\nthe dog", "cat owl and dog"),
        ("it's well-known", "it s well known"),
        ("another theme", "another theme"),
        ("snake_case", "snake_case"),
        ("3.5", "3 5"),
        ("x = -5; 3-5", "x 5 3 5".replace(" 5", " -5", 1)),
        ("\N{MINUS SIGN}5", "-5"),
        ("- item", "item"),
        ("STRASSE Straße", "strasse strasse"),
        ("cafe\u0301", "caf\u00e9"),
        ("４２ ٤٢", "42 42"),
        ("yes ❤\ufe0f", "yes"),
        ("कि!", "कि"),
        ("!?", ""),
        ("", ""),
        (None, ""),
        (42, "42"),
        (-1.5, "-1 5"),
    ],
)
def test_normalizing_leaves_the_words(text: Any, normal: str) -> None:
    assert normalize(text) == normal


@given(TEXTS)
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert not {"a", "an", "the"} & set(once.split())


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        ("The Paris.", "paris", 1.0),
        ("Paris, France", "paris france", 1.0),
        ("London", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("STRASSE", "straße", 1.0),
        ("cafe\u0301", "caf\u00e9", 1.0),
        ("कि", "का", 0.0),  # they differ in a vowel sign alone
        ("-5", "5", 0.0),
        ("5", "-5", 0.0),
        (" a. ", "A", 1.0),  # the answer A of a choice is not the article
        ("B", "A", 0.0),
        ("", "A", 0.0),
        ("the", "A", 0.0),
        ("+", "+", 1.0),
        ("-", "+", 0.0),
        ("", "+", 0.0),
        ("", "", 1.0),
        (42, "42", 1.0),
        ("None", "None", 1.0),
        (None, "None", 0.0),
        (None, "", 0.0),
    ],
)
def test_a_match_is_of_what_matters(answer: Any, expected: str, score: float) -> None:
    assert exact_match(answer, expected) == score


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        (" Paris ", "PARIS", 1.0),
        ("Paris.", "Paris", 0.0),
        ("The Paris", "Paris", 0.0),
        ("STRASSE", "straße", 1.0),
        (None, "none", 0.0),
    ],
)
def test_without_normalizing_only_case_and_blanks_around_are_free(answer: Any, expected: str, score: float) -> None:
    assert exact_match(answer, expected, normalize_text=False) == score


@given(TEXTS)
def test_every_text_matches_itself(text: str) -> None:
    assert exact_match(text, text) == 1.0
    assert exact_match(text, text, normalize_text=False) == 1.0
    assert contains(text, text) == 1.0
    assert contains(text, text, case_sensitive=True) == 1.0


@pytest.mark.parametrize(
    ("answer", "substring", "case_sensitive", "score"),
    [
        ("It is in Paris, France.", "paris", False, 1.0),
        ("It is in Paris, France.", "paris", True, 0.0),
        ("It is in Paris, France.", "Paris", True, 1.0),
        ("comparison", "paris", False, 1.0),
        ("STRASSE", "straße", False, 1.0),
        ("cafe\u0301", "é", True, 1.0),
        (12345, "234", False, 1.0),
        ("x", "", False, 1.0),
        (None, "none", False, 0.0),
        (None, "", False, 0.0),
    ],
)
def test_an_answer_contains_a_text(answer: Any, substring: str, case_sensitive: bool, score: float) -> None:
    assert contains(answer, substring, case_sensitive=case_sensitive) == score
    assert contains_any(answer, [substring], case_sensitive=case_sensitive) == score
    assert contains_all(answer, [substring], case_sensitive=case_sensitive) == score


def test_any_needs_one_and_all_need_every() -> None:
    assert contains_any("Paris, France", ["london", "paris"]) == 1.0
    assert contains_all("Paris, France", ["london", "paris"]) == 0.0
    assert contains_all("Paris, France", ["france", "paris"]) == 1.0
    assert contains_any("Paris", []) == 0.0
    assert contains_all("Paris", []) == 1.0
    assert contains_all(None, []) == 0.0


def test_one_text_in_place_of_a_list_is_refused() -> None:
    for function in (contains_any, contains_all):
        with pytest.raises(UsageError, match="got 'paris', expected a list"):
            function("p", "paris")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("42", 42),
        ("The answer is 3.", 3),
        ("first 1, then 2", 1),
        ("-5 degrees", -5),
        ("\N{MINUS SIGN}5 degrees", -5),
        ("+0.5", 0.5),
        (".5", 0.5),
        ("x=-.5", -0.5),
        ("1e-3 m", 1e-3),
        ("2E3", 2000),
        ("5 eggs", 5),
        ("5e", 5),
        ("1,234", 1234),
        ("$1,234,567.89", 1234567.89),
        ("-1,234e1", -12340),
        ("1,2", 1),
        ("1,2345", 1),
        ("1,234,5", 1),
        ("12345,678", 12345),
        ("0,125", 0),
        ("1, 234", 1),
        ("GPT-4", 4),
        ("3-5", 3),
        ("2024-05-01", 2024),
        ("50%", 50),
        ("1/2", 1),
        ("1.2.3", 1.2),
        ("٤٢", 42),
        ("４２", 42),
        (42, 42),
        (-1.5, -1.5),
        ("x² = 9", 9),
    ],
)
def test_the_first_number_is_read_as_it_is_written(answer: Any, number: float) -> None:
    assert numeric_match(answer, number) == 1.0
    assert numeric_match(answer, number + 1e-6) == 0.0


@pytest.mark.parametrize("answer", ["", "none", "nan", "inf", "-", ".", None, math.nan, math.inf, True])
def test_an_answer_without_a_number_matches_none(answer: Any) -> None:
    for number in (0.0, 1.0, math.nan, math.inf):
        assert numeric_match(answer, number, tolerance=math.inf) == 0.0


def test_nan_is_never_matched() -> None:
    assert numeric_match("1", math.nan) == 0.0
    assert numeric_match("1", math.nan, tolerance=math.inf) == 0.0
    assert numeric_match("1e999", math.inf) == 0.0


def test_the_tolerance_is_to_both_sides_and_its_end_is_within() -> None:
    assert [numeric_match(text, 10, tolerance=2) for text in ("7.9", "8", "10", "12", "12.1")] == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("tolerance", [-0.1, math.nan])
def test_a_tolerance_that_cannot_be_meant_is_refused(tolerance: float) -> None:
    with pytest.raises(UsageError, match="tolerance: got"):
        numeric_match("1", 1, tolerance=tolerance)


@given(FINITE, st.sampled_from(["{}", "is {}.", "x={} m", "({})", "{}%", "${} or 7"]))
def test_a_number_is_found_in_a_sentence(number: float, sentence: str) -> None:
    assert numeric_match(sentence.format(repr(number)), number) == 1.0


@given(st.integers(-(10**15), 10**15))
def test_thousands_may_be_separated(number: int) -> None:
    assert numeric_match(f"about {number:,}.", number) == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "score"),
    [
        ("The capital is Paris, France", "Paris", 0.4),
        ("Paris", "the Paris!", 1.0),
        ("paris paris", "Paris", 2 / 3),
        ("London", "Paris", 0.0),
        ("A", "A", 1.0),
        ("", "Paris", 0.0),
        ("Paris", "", 0.0),
        ("", "", 0.0),
        (None, "None", 0.0),
        (42, "42", 1.0),
    ],
)
def test_f1_is_of_the_words_shared(answer: Any, reference: str, score: float) -> None:
    assert f1_score(answer, reference) == pytest.approx(score)


@given(TEXTS, TEXTS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(answer: str, reference: str) -> None:
    score = f1_score(answer, reference)
    assert 0.0 <= score <= 1.0
    got, wanted = normalize(answer).split(), normalize(reference).split()
    if not wanted:
        return  # then the articles count
    shared = sum(min(got.count(word), wanted.count(word)) for word in set(wanted))
    if not shared:
        assert score == 0.0
        return
    precision, recall = shared / len(got), shared / len(wanted)
    assert score == pytest.approx(2 * precision * recall / (precision + recall))
    assert (score == 1.0) == (sorted(got) == sorted(wanted))


@given(st.text(), st.text(), FINITE)
def test_whatever_an_agent_says_has_a_score(answer: str, expected: str, number: float) -> None:
    for score in (
        exact_match(answer, expected),
        exact_match(answer, expected, normalize_text=False),
        contains(answer, expected),
        contains_any(answer, [expected, "x"]),
        contains_all(answer, [expected, "x"]),
        numeric_match(answer, number, tolerance=1.0),
        f1_score(answer, expected),
    ):
        assert type(score) is float
        assert 0.0 <= score <= 1.0


@pytest.mark.parametrize("unit", ["9", "1,234,", "-", "a ", ".", "e\u0301", "1e", "ß"])
def test_a_long_answer_takes_no_longer_than_its_length(unit: str) -> None:
    answer = unit * 300_000  # a search that went back for each character would outlast the test's 60 s
    assert numeric_match(answer, 0.5) == 0.0
    assert exact_match(answer, "x") == f1_score(answer, "x") == contains(answer, "\N{SNOWMAN}") == 0.0


def test_a_decimal_digit_of_every_script_is_a_digit() -> None:
    for code in range(0x110000):
        if unicodedata.category(chr(code)) == "Nd":
            assert numeric_match(chr(code), unicodedata.decimal(chr(code))) == 1.0


@pytest.mark.parametrize("number", ["3", None, True, [3]], ids=repr)
def test_what_is_no_number_is_not_expected_in_an_answer(number: Any) -> None:
    with pytest.raises(UsageError, match="expected: got "):
        numeric_match("3", number)
    with pytest.raises(UsageError, match="tolerance: got "):
        numeric_match("3", 3.0, tolerance=number)


def test_a_whole_number_beyond_all_floats_is_matched_by_none() -> None:
    assert numeric_match("9" * 5000, 10**400) == 0.0
    assert numeric_match("3", -(10**400)) == 0.0
