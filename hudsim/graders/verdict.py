"""``Verdict``: what a grade says, and whether it carries a reward."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from hudsim.graders.number import finite

__all__ = ["Verdict"]


class Verdict(StrEnum):
    """What became of an episode's grade.

    ================== ===== =============================================================================
    verdict            valid when
    ================== ===== =============================================================================
    ``passed``         yes   the reward is 1 or more
    ``partial``        yes   the reward lies between 0 and 1
    ``failed``         yes   the reward is 0 or less
    ``tampered``       yes   there is evidence that the solution reached for the verdict
    ``resource_limit`` yes   the solution ran into a limit: memory, processes, disk, CPU time
    ``grade_timeout``  yes   the solution did not come to an end while it was graded
    ``grader_error``   no    the template raised as it graded, or graded with what is no grade
    ``infra_error``    no    the harness failed: a sandbox, a simulator, a template that did not come to its prompt
    ``cancelled``      no    somebody stopped the run
    ================== ===== =============================================================================

    The rule: whatever the agent or its solution can bring about (a fork bomb, a hang in grading, a killed
    sandbox) is a valid 0 and is not run again, or a learner would erase its losses. Only the harness's own
    faults are invalid: they carry no reward, count in no mean, and may be run again.
    """

    passed = "passed"
    partial = "partial"
    failed = "failed"
    tampered = "tampered"
    resource_limit = "resource_limit"
    grade_timeout = "grade_timeout"
    grader_error = "grader_error"
    infra_error = "infra_error"
    cancelled = "cancelled"

    @property
    def valid(self) -> bool:
        """It carries a reward."""
        return self not in (Verdict.grader_error, Verdict.infra_error, Verdict.cancelled)

    @classmethod
    def of(cls, reward: float) -> Self:
        """By the reward alone: ``passed``, ``partial`` or ``failed``.

        Raises :class:`~hudsim.errors.UsageError` for what is no finite number.
        """
        number = finite(reward)
        return cls("passed" if number >= 1 else "failed" if number <= 0 else "partial")
