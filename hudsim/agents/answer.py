"""``Answer``: one answer to everything."""

from __future__ import annotations

from dataclasses import dataclass

from hudsim.eval.run import Run
from hudsim.eval.trace import Step

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """Answers ``text`` to every prompt: what a guess is worth."""

    text: str

    @property
    def name(self) -> str:
        """``answer:TEXT``."""
        return f"answer:{self.text}"

    async def __call__(self, run: Run, /) -> None:
        run.trace.content = self.text
        run.record(Step("agent", self.text))
