"""The tests that an agent sees."""

from words import shorten, wrap


def test_a_long_text_is_shortened():
    assert shorten("a long way home", 9) == "a long..."
    assert shorten("home", 9) == "home"


def test_a_text_is_wrapped():
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("", 8) == []
