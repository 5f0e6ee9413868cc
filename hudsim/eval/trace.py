"""``Trace``: what an agent did in one run, step by step, with room for what training needs."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from hudsim.errors import UsageError
from hudsim.given import given_a

__all__ = ["Step", "Tokens", "Trace"]


@dataclass(slots=True)
class Tokens:
    """One call of a language model, as training wants it.

    prompt_ids, output_ids
        Token ids as they were fed in and sampled.
    logprobs
        Log-probability of each output token, at the time of sampling.
    mask
        Which output tokens are trained on. None: all.
    model_version
        Which weights sampled them.
    """

    prompt_ids: list[int]
    output_ids: list[int]
    logprobs: list[float] | None = None
    mask: list[bool] | None = None
    model_version: str | None = None


@dataclass(slots=True)
class Step:
    """One step.

    source
        Whose: ``task`` (the environment's), ``user`` (the prompt), ``agent``, ``tool``, ``robot``, ``system``.
    content
        What was said, in words. None: nothing.
    data
        What there is beside words, plain JSON.
    error
        What went wrong. None: nothing.
    started_s, ended_s
        Seconds since the run's start. ``started_s`` None: when the step was recorded.
    tokens
        Of a model's turn. None: no model, or it does not tell.
    """

    source: str
    content: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    started_s: float | None = None
    ended_s: float | None = None
    tokens: Tokens | None = None

    def to_json(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in _FIELDS}
        if self.tokens is not None:
            row["tokens"] = {name: getattr(self.tokens, name) for name in _TOKEN_FIELDS}
        return {name: value for name, value in row.items() if value not in (None, {})}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        known = {name: row[name] for name in _FIELDS if name in row}
        if "tokens" in known:
            known["tokens"] = Tokens(**known["tokens"])
        return cls(**known)


_FIELDS = tuple(Step.__dataclass_fields__)
_TOKEN_FIELDS = tuple(Tokens.__dataclass_fields__)


class Trace:
    """Ordered steps, and ``content``: the answer that is graded (None: none was given)."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.content: Any = None
        self.extra: dict[str, Any] = {}
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        """Seconds since the run's start."""
        return time.monotonic() - self._began_s

    def record(self, step: Step) -> Step:
        """Add a step; its times are filled in where it says none.

        Raises :class:`~hudsim.errors.UsageError` for data that is no plain JSON: where it is recorded, not when
        the run is kept.
        """
        given_a(Step, step, "run.record", "a Step")
        try:
            json.dumps(step.to_json())
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"a step's data is no plain JSON: {error}") from None
        now_s = round(self.now_s(), 6)
        step.started_s = now_s if step.started_s is None else step.started_s
        step.ended_s = now_s if step.ended_s is None else step.ended_s
        self.steps.append(step)
        return step

    def copy(self) -> Self:
        """Another with these steps so far, on the same clock."""
        twin = copy.copy(self)
        twin.steps, twin.extra = list(self.steps), dict(self.extra)
        return twin

    def to_json(self) -> dict[str, Any]:
        return {"content": self.content, "steps": [step.to_json() for step in self.steps], "extra": self.extra}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        trace = cls()
        trace.content = document.get("content")
        trace.steps = [Step.from_json(row) for row in document.get("steps", [])]
        trace.extra = dict(document.get("extra") or {})
        return trace
