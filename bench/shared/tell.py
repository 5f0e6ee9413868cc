"""``tell``: answer whoever asks, at the other end of an :class:`~hudsim.bench.shared.asked.Asked`."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["tell"]


def tell(words: str, answers: TextIO) -> None:
    """A line, at once; nobody hears it if whoever asks has ended: then stdin has, too, and the process with it."""
    try:
        print(words, file=answers, flush=True)
    except BrokenPipeError:
        # What is left in the buffer is written once more when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())
