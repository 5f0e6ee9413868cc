"""``Limits``: how long each part of a run may take."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from hudsim.environment.task import Task
from hudsim.errors import UnknownName, UsageError
from hudsim.given import given_count, shown

__all__ = ["Limits"]


_AGENT_CONFIG = ("timeout_seconds", "max_steps")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, each above 0; None: no limit of its own.

    agent_s
        The agent's work. When it is up the agent is stopped and what it left is graded.
    rollout_s
        All of a run, from asking for its environment to the grade. A run that is cut off while its environment
        comes up or its task starts is an error; while the agent works or its work is graded, a 0.
    grade_s
        Grading; a 0 if it is up.
    start_s
        Starting the task: the template up to its prompt, waiting for a free slot included.
    """

    agent_s: float | None = None
    rollout_s: float | None = None
    grade_s: float | None = 1800.0
    start_s: float | None = 600.0

    def of(self, task: Task) -> Limits:
        """These, with the time for the agent that ``task`` itself asks for.

        Raises :class:`~hudsim.errors.UsageError` for a key of its ``agent_config`` that means nothing here, and for a
        time that cannot be.
        """
        config = task.agent_config or {}
        for key in config:
            if key not in _AGENT_CONFIG:
                raise UnknownName(f"key of the agent_config of task {task.slug}", key, _AGENT_CONFIG)
        if config.get("max_steps") is not None:
            given_count(config["max_steps"], f"agent_config of task {task.slug}: max_steps")
        try:
            return replace(self, agent_s=config.get("timeout_seconds", self.agent_s))
        except UsageError as error:
            raise UsageError(f"agent_config of task {task.slug}: timeout_seconds: {error.message}") from None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise UsageError(f"{field.name}: got {shown(value)}, expected seconds above 0, or None")
        if self.agent_s is not None and self.rollout_s is not None and self.agent_s >= self.rollout_s:
            raise UsageError(
                f"got {self.agent_s:g} s for the agent and {self.rollout_s:g} s for the whole run; expected less for "
                "the agent, or its work is never graded"
            )
