"""``End``: how an episode ended, and whose fault that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hudsim.errors import (
    ContractError,
    FrameTooLarge,
    HudsimError,
    PolicyDeadline,
    PolicyFailed,
    SimDiverged,
    WireError,
)

__all__ = ["CANCELLED", "MAX_STEPS", "POLICYS_FAULT", "POLICY_FAILED", "POLICY_LOST", "TERMINATED", "TRUNCATED", "End"]

POLICYS_FAULT = frozenset(
    error.name for error in (PolicyDeadline, PolicyFailed, ContractError, WireError, FrameTooLarge, SimDiverged)
)
"""Reasons that the policy, or its client, brought about: such an episode counts as failed.

Every other reason says nothing about the policy, and the run is an error, never a 0.
"""


@dataclass(frozen=True, slots=True)
class End:
    """``terminated`` (the task is over), ``truncated`` (the world's time limit), ``max_steps`` (the agent's own
    limit) or ``aborted`` for a ``reason``, the ``name`` of the error that did it. Prints as ``aborted(sim_hung)``.
    """

    kind: Literal["terminated", "truncated", "max_steps", "aborted"]
    reason: str | None = None

    @property
    def is_error(self) -> bool:
        """The run says nothing about the policy: it is to be run again, not scored."""
        return self.kind == "aborted" and self.reason not in POLICYS_FAULT

    def __str__(self) -> str:
        return f"{self.kind}({self.reason})" if self.reason else self.kind

    @classmethod
    def of(cls, error: HudsimError) -> End:
        """The end that an error makes."""
        return cls("aborted", error.name)

    @classmethod
    def parse(cls, text: str) -> End:
        """From what :meth:`__str__` printed."""
        kind, _, reason = text.rstrip(")").partition("(")
        if kind not in ("terminated", "truncated", "max_steps", "aborted"):
            raise ValueError(f"got end {text!r}, expected terminated, truncated, max_steps or aborted(reason)")
        return cls(kind, reason or None)  # type: ignore[arg-type]  # checked just above


TERMINATED = End("terminated")
TRUNCATED = End("truncated")
MAX_STEPS = End("max_steps")
POLICY_LOST = End("aborted", "policy_lost")
CANCELLED = End("aborted", "cancelled")
POLICY_FAILED = End("aborted", PolicyFailed.name)
