"""What `slug` is to do."""

import words


def test_words_are_joined_in_lower_case():
    assert words.slug("Hello World") == "hello-world"


def test_what_is_neither_letter_nor_digit_separates():
    assert words.slug("Hello, World!") == "hello-world"
    assert words.slug("a--b__c") == "a-b-c"


def test_digits_stay():
    assert words.slug("Chapter 12: The End") == "chapter-12-the-end"


def test_without_words_it_is_untitled():
    assert words.slug("") == "untitled"
    assert words.slug(" ... ") == "untitled"
