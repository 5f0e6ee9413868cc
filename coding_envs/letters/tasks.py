"""The environment ``letters``: one template, twelve tasks. A prompt, an answer, a grade, and nothing to start."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from hudsim.environment import Environment
from hudsim.eval import Taskset
from hudsim.graders import numeric_match

__all__ = ["count", "env", "tasks"]

env = Environment("letters")


@env.template(id="count")
async def count(word: str, letter: str) -> AsyncGenerator[Any, Any]:
    """Count how often a letter stands in a word. The first number of the answer is graded."""
    answer = yield f"How many times does the letter {letter!r} stand in {word!r}? Answer with a number."
    yield numeric_match(answer, word.count(letter))


@count.reference
def right(word: str, letter: str) -> str:
    """The number, in digits."""
    return str(word.count(letter))


_ASKED = (
    ("strawberry", "r"),
    ("banana", "a"),
    ("blueberry", "e"),
    ("raspberry", "r"),
    ("mississippi", "s"),
    ("assessment", "s"),
    ("parallel", "l"),
    ("committee", "e"),
    ("bookkeeper", "o"),
    ("rhythm", "e"),
    ("onomatopoeia", "o"),
    ("abracadabra", "a"),
)


def _tasks() -> Taskset:
    rows = [count(word=word, letter=letter) for word, letter in _ASKED]
    for row, (word, letter) in zip(rows, _ASKED, strict=True):
        row.slug = f"{word}-{letter}"
        row.columns = {"length": len(word)}
    return Taskset("letters", rows)


tasks = _tasks()
