"""``Oracle``: does what the task's author would do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from hudsim.agents.changes import Changes
from hudsim.errors import AgentError
from hudsim.eval.protocols import Agent
from hudsim.eval.run import Run
from hudsim.eval.trace import Step

__all__ = ["Oracle", "Resolver"]

Resolver = Callable[[str, Mapping[str, Any]], Agent]
"""From a policy's name and its settings to an agent that plays it."""

_KEYS = ("answer", *Changes.KEYS, "policy", "settings")


class Oracle:
    """Carries out each task's reference: a task that pays it less than 1 cannot be solved, or is graded wrongly.

    A reference is the answer itself (any plain JSON that is no object), or an object of

    answer
        The answer.
    policy, settings
        A policy by name, and what makes it as it must be: it plays the run's robot first.
    patch, files, commands
        What is then changed in the run's workspace: see :class:`~hudsim.agents.changes.Changes`.

    The environment must be served so that it reveals references; ``needs_reference`` asks for that.

    policy
        What makes the policies that references name; one agent for each name and settings. None: no reference
        may name one.
    """

    name: ClassVar[str] = "oracle"
    needs_reference: ClassVar[bool] = True

    def __init__(self, policy: Resolver | None = None) -> None:
        self._resolve = policy
        self._players: dict[str, Agent] = {}

    async def __call__(self, run: Run, /) -> None:
        """Raises :class:`~hudsim.errors.TaskError` if the reference is not to be had, and
        :class:`~hudsim.errors.AgentError` if it is none that can be carried out.
        """
        wanted = _Reference.of(f"the reference of {run.slug}", await run.reference())
        if wanted.policy is not None:
            await self._play(run, wanted.policy, wanted.settings)
        if wanted.changes is not None:
            await wanted.changes.make(run)
        if wanted.answer is not None:
            run.trace.content = wanted.answer
            words = wanted.answer if isinstance(wanted.answer, str) else json.dumps(wanted.answer)
            run.record(Step("agent", words))

    async def _play(self, run: Run, policy: str, settings: Mapping[str, Any]) -> None:
        run.record(Step("agent", f"plays {policy}", {"policy": policy, "settings": dict(settings)}))
        if ":" in policy and not run.same_host:
            raise AgentError(f"a reference from another host names {policy!r}; only policies by name are played then")
        await self._player(policy, settings)(run)

    def _player(self, policy: str, settings: Mapping[str, Any]) -> Agent:
        if self._resolve is None:
            raise AgentError(f"a reference names the policy {policy!r}, and this oracle was given nothing to make it")
        key = json.dumps([policy, settings], sort_keys=True)
        if key not in self._players:
            self._players[key] = self._resolve(policy, settings)
        return self._players[key]

    def __repr__(self) -> str:
        return "Oracle()"


@dataclass(frozen=True)
class _Reference:
    answer: Any
    policy: str | None
    settings: Mapping[str, Any]
    changes: Changes | None

    @classmethod
    def of(cls, where: str, reference: Any) -> Self:
        """Raises :class:`~hudsim.errors.AgentError` for what cannot be carried out."""
        parts = reference if isinstance(reference, dict) else {"answer": reference}
        for key in parts:
            if key not in _KEYS:
                raise AgentError(f"{where} has the key {key!r}; known are: {', '.join(_KEYS)}")
        answer, policy, settings = (parts.get(key) for key in ("answer", "policy", "settings"))
        changes = Changes.of(where, parts)
        if answer is None and policy is None and changes is None:
            raise AgentError(
                f"{where} is {json.dumps(reference):.80}; expected an answer, or an object that has one, a policy, or "
                "what is to be changed"
            )
        if not isinstance(policy, str | None):
            raise AgentError(f"{where}: policy: got {policy!r:.80}, expected a name")
        if not isinstance(settings, dict | None) or (settings and policy is None):
            raise AgentError(f"{where}: settings: got {settings!r:.80}, expected an object beside a policy")
        return cls(answer, policy, settings or {}, changes)
