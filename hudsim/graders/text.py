"""Comparisons of an answer with what was expected, each a score from 0.0 to 1.0.

``answer`` is text, or anything that ``str()`` makes text of; None is no answer and matches nothing. Case is folded as
Unicode does (``STRASSE`` is ``Straße``), and a letter with its accents is the same however it is encoded.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hudsim.errors import UsageError
from hudsim.given import refusal
from hudsim.graders.number import real

__all__ = ["contains", "contains_all", "contains_any", "exact_match", "f1_score", "normalize", "numeric_match"]

_ARTICLES = frozenset(("a", "an", "the"))
_HYPHEN = re.compile(r"(?<=\w)-|-(?!\d)")  # what is left of "-" is a sign
_NUMBER = re.compile(
    r"""
    (?: (?<!\w) [+-] )?                                # in "GPT-4" it is a hyphen
    (?: (?!0) \d{1,3} (?:,\d{3})+ (?!,?\d) (?:\.\d*)?  # 1,234,567.8
      | \d+ (?:\.\d*)?                                 # 3. at the end of a sentence is 3
      | \.\d+ )
    (?: [eE][+-]?\d+ )?
    """,
    re.VERBOSE,
)


def normalize(text: str | Any) -> str:
    """What matters of ``text``: its words in lower case, without punctuation and without *a, an, the*.

    ``"  The Answer is: 42! "`` gives ``"answer is 42"``. A minus right before a number stays, digits of any script are
    0 to 9, marks that belong to a letter (accents, vowel signs) stay with it. None gives ``""``.
    """
    return " ".join(_without_articles(_words(text)))


def exact_match(answer: str | Any, expected: str, *, normalize_text: bool = True) -> float:
    """1.0 if both are the same once normalized; without ``normalize_text``, but for case and blanks around them.

    Where normalizing would leave nothing of ``expected`` it goes less far, so that ``A`` (of a choice) is matched by
    ``a.`` but not by ``the``, and ``+`` not by ``-``.
    """
    if answer is None:
        return 0.0
    if normalize_text:
        got, wanted = _compared(answer, expected)
        if wanted:
            return float(got == wanted)
    return float(_folded(answer).strip() == _folded(expected).strip())


def contains(answer: str | Any, substring: str, *, case_sensitive: bool = False) -> float:
    """1.0 if ``substring`` is somewhere in the answer, be it within a word."""
    return contains_all(answer, [substring], case_sensitive=case_sensitive)


def contains_any(answer: str | Any, substrings: list[str], *, case_sensitive: bool = False) -> float:
    """1.0 if at least one of ``substrings`` is in the answer; of none, 0.0."""
    return float(any(_found(answer, substrings, case_sensitive)))


def contains_all(answer: str | Any, substrings: list[str], *, case_sensitive: bool = False) -> float:
    """1.0 if every one of ``substrings`` is in the answer; of none, 1.0 if there is an answer."""
    return float(answer is not None and all(_found(answer, substrings, case_sensitive)))


def numeric_match(answer: str | Any, expected: float, *, tolerance: float = 0.0) -> float:
    """1.0 if the first number in the answer is at most ``tolerance`` away from ``expected``.

    A number is written as in ``-3``, ``+0.5``, ``.5``, ``3.``, ``1e-3``, ``1,234.5`` (commas only before groups of
    three: ``1,2`` begins with 1), in the digits of any script. A hyphen after a letter or digit is no sign: ``GPT-4``
    has 4. A unit or percent sign after it is not looked at: ``50%`` is 50. NaN never matches, neither does an answer
    without a number. The difference is one of floats: 1.1 is a little more than 0.1 away from 1, leave room for it.

    Raises :class:`~hudsim.errors.UsageError` for a tolerance below 0 or NaN, and for what is no number.
    """
    wanted, apart = _number("expected", expected), _number("tolerance", tolerance)
    if not apart >= 0:
        raise UsageError(f"tolerance: got {tolerance!r}, expected 0 or more")
    if answer is None:
        return 0.0
    found = _NUMBER.search(str(answer).replace("\N{MINUS SIGN}", "-"))
    return float(found is not None and abs(float(found[0].replace(",", "")) - wanted) <= apart)


def f1_score(answer: str | Any, reference: str) -> float:
    """How much of the words the two share: the harmonic mean of precision and recall over normalized words.

    ``2 * shared / (words of answer + words of reference)``, a word counted as often as both have it (Rajpurkar et
    al., SQuAD, 2016). ``f1_score("The capital is Paris, France", "Paris")`` is 0.4. 0.0 if either has no words.
    """
    got, wanted = _compared(answer, reference)
    shared = (Counter(got) & Counter(wanted)).total()
    return 2 * shared / (len(got) + len(wanted)) if shared else 0.0


def _number(what: str, value: Any) -> float:
    try:
        return real(value)
    except UsageError as error:
        raise UsageError(f"{what}: {error.message}") from None


def _composed(text: Any) -> str:
    return unicodedata.normalize("NFC", str(text))


def _folded(text: Any) -> str:
    return _composed(str(text).casefold())


def _words(text: Any) -> list[str]:
    folded = "" if text is None else _folded(text).replace("\N{MINUS SIGN}", "-")
    folded = _HYPHEN.sub(" ", folded)
    return folded.translate({ord(char): _in_word(char) for char in set(folded)}).split()


def _in_word(char: str) -> str:
    """What stands for ``char`` in a word; a blank: it ends the word."""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if char.isalnum() or char in "_-":
        return char
    is_mark = unicodedata.category(char) in ("Mn", "Mc") and not "\ufe00" <= char <= "\ufe0f"  # as emoji have
    return char if is_mark else " "


def _without_articles(words: list[str]) -> list[str]:
    return [word for word in words if word not in _ARTICLES]


def _compared(answer: Any, expected: Any) -> tuple[list[str], list[str]]:
    """The words of both, without the articles unless nothing else is expected."""
    got, wanted = _words(answer), _words(expected)
    bare = _without_articles(wanted)
    return (_without_articles(got), bare) if bare else (got, wanted)


def _found(answer: Any, substrings: Any, case_sensitive: bool) -> list[bool]:
    if isinstance(substrings, str) or not isinstance(substrings, Iterable):
        raise refusal("substrings", substrings, "a list of texts")
    if answer is None:
        return [False for _ in substrings]
    same = _composed if case_sensitive else _folded
    within = same(answer)
    return [same(substring) in within for substring in substrings]
