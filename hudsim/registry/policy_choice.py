"""From a policy's name and settings to an agent that plays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudsim.errors import UsageError
from hudsim.registry.adapter_choice import make_adapter
from hudsim.registry.arguments import Arguments, make
from hudsim.registry.entry import Entry
from hudsim.registry.names import find, policies, served_policy
from hudsim.robot.model import Model

if TYPE_CHECKING:
    from hudsim.robot.agent import RobotAgent

__all__ = ["Policy", "policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that has been found but not made."""

    entry: Entry
    made: Callable[..., Any]
    args: Mapping[str, Any]

    @property
    def needs_privileged(self) -> bool:
        """Whether it reads what a real robot would not have."""
        return bool(getattr(self.made, "needs_privileged", False))

    def agent(
        self,
        *,
        chunks: str | None = None,
        length: int | None = None,
        rate_hz: float | None = None,
        adapter: str | None = None,
    ) -> RobotAgent:
        """An agent that plays it.

        chunks
            A chunk strategy by name. None: the policy's own, else the agent's choice.
        length
            How many ticks of a chunk are executed before the next is asked for. None: the strategy's own.
        rate_hz
            The rate that the policy's chunks are made for. None: the world's.
        adapter
            Between world and policy, as :func:`~hudsim.registry.adapter_choice.make_adapter` takes it. None: nothing.

        Raises :class:`~hudsim.errors.UsageError` for what it cannot be made with.
        """
        from hudsim.robot.agent import RobotAgent
        from hudsim.robot.chunks import make_chunks

        name, own_length = self.entry.chunks or ("receding" if length else None, None)
        name, length = chunks or name, length or (None if chunks else own_length)
        strategy = make_chunks(name, length) if name is not None else None
        made = make(f"policy {self.entry.name}", self.made, self.args)
        if isinstance(made, Model):
            between = None if adapter is None else make_adapter(adapter, privileged=made.needs_privileged)
            return RobotAgent(made, between, strategy, policy_rate_hz=rate_hz)
        if not isinstance(made, RobotAgent):
            raise UsageError(
                f"policy {self.entry.name} is a {type(made).__name__}; expected a hudsim Model or RobotAgent"
            )
        if adapter is not None:
            raise UsageError(f"policy {self.entry.name} is a whole agent, its adapter its own; got adapter {adapter}")
        return made.rechunked(strategy, rate_hz)


def policy(name: str, settings: Mapping[str, Any] | None = None) -> Policy:
    """The policy of ``name`` with ``settings`` for what makes it. Raises as :func:`world` does."""
    given = Entry(name, name, "") if ":" in name else None
    entry = served_policy(name) or find(name, "policy", given, policies())
    made = entry.load()
    settings = settings or {}
    Arguments.of(made).check(name, settings)
    return Policy(entry, made, {**entry.args, **settings})
