"""``Noop``: does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudsim.eval.run import Run
from hudsim.eval.trace import Step

__all__ = ["Noop"]


@dataclass(frozen=True)
class Noop:
    """Does nothing and answers nothing: a task that pays it more than 0 pays for nothing."""

    name: ClassVar[str] = "noop"

    async def __call__(self, run: Run, /) -> None:
        run.record(Step("agent", "does nothing"))
