"""``progress``: what a benchmark is at, for who waits."""

from __future__ import annotations

import sys

__all__ = ["progress"]


def progress(words: str) -> None:
    """A line on stderr; stdout is the document's."""
    print(words, file=sys.stderr, flush=True)
