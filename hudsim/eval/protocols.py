"""``Agent`` and ``Provider``: what anyone may plug in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from hudsim.environment.task import Task

if TYPE_CHECKING:
    from hudsim.eval.run import Run
    from hudsim.eval.runtime import Runtime

__all__ = ["Agent", "Provider"]


class Agent(Protocol):
    """Drives one run: ``await agent(run)``. Any coroutine function of a run is one.

    It reads ``run.prompt`` and ``run.capabilities``, works, and leaves its answer (if the task wants one) in
    ``run.trace.content``. One agent drives many runs at once, so what is a run's own it keeps in that call.
    What it raises ends the run's work, not the run: it is graded as it stands.

    An agent may have ``needs_reference = True``: it asks for the task's reference.
    """

    async def __call__(self, run: Run, /) -> None:
        """Work on ``run`` until it is done."""
        ...


Provider = Callable[[Task], AbstractAsyncContextManager["Runtime"]]
"""Where an environment runs: called with a task, it gives a served environment for as long as the run lasts."""
