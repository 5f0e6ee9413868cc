"""What a mended `wrap` does."""

from words import wrap


def test_no_line_is_longer_than_the_width():
    assert wrap("aaa bbb", 6) == ["aaa", "bbb"]
    assert wrap("to be or not to be", 5) == ["to be", "or", "not", "to be"]


def test_a_line_may_be_as_long_as_the_width():
    assert wrap("aaa bbb", 7) == ["aaa bbb"]


def test_a_long_word_has_a_line_of_its_own():
    assert wrap("a supercalifragilistic b", 5) == ["a", "supercalifragilistic", "b"]


def test_no_words_are_no_lines():
    assert wrap("  ", 5) == []
