"""``JobRow``: what a job is called; with it what a listing says, and all that was kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hudsim.eval.batch import Batch
from hudsim.eval.run import Run
from hudsim.graders import Verdict

__all__ = ["JobRow", "JobSummary", "KeptJob"]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. ``group``: runs a task where a call does not say; ``created_at``: ISO 8601 in UTC."""

    id: str
    name: str
    group: int
    created_at: str


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in a listing.

    config
        Of its first batch; empty if none was planned.
    expected
        How many runs it should have.
    verdicts
        How often each occurs; ``missing`` is what did not run.
    reward
        Mean over the valid ones. None: there is none.
    """

    job: JobRow
    config: dict[str, Any]
    expected: int
    verdicts: Counter[str]
    reward: float | None

    @property
    def ran(self) -> int:
        """How many runs have a verdict that counts."""
        return sum(self.verdicts[verdict] for verdict in Verdict if verdict.valid)


@dataclass(frozen=True, slots=True)
class KeptJob:
    """All that was kept of a job but its traces; ``runs`` in order."""

    job: JobRow
    batches: list[Batch]
    runs: list[Run]
