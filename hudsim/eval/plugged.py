"""``check_agent`` and ``check_provider``: whether what was plugged in can be one, before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hudsim.capability import Capability
from hudsim.environment.task import Task
from hudsim.errors import UsageError
from hudsim.given import check_arguments, given_hook, refusal
from hudsim.robot.model import Model

__all__ = [
    "check_agent",
    "check_protocols",
    "check_provider",
    "check_reference",
    "check_runtime_config",
    "versions_of",
]

_AGENT = "an agent: a coroutine function of a run (async def), or an object that is called as one"
_PROVIDER = (
    'LocalRuntime("env.py"), SubprocessRuntime("env.py"), Runtime("ws://…"), or a function of a task that gives an '
    "async context manager of a Runtime"
)


def check_agent(agent: Any) -> None:
    """Whether ``agent`` can be called with a run and awaited.

    Raises :class:`~hudsim.errors.UsageError`: a job of runs that only say so would count as losses.
    """
    hint = ""
    if isinstance(agent, type):
        hint = f"; make one: {agent.__qualname__}()"
    elif isinstance(agent, Model):
        hint = "; a Model is played by RobotAgent(model)"
    elif isinstance(agent, str):
        hint = "; by name they are for the command, `hudsim eval`: here it is hudsim.agents.Noop() and its like"
    given_hook(agent, "agent", 1, f"{_AGENT}{hint}")


def check_provider(provider: Any, what: str = "runtime") -> None:
    """Whether ``provider`` can be asked for a task's environment. Raises :class:`~hudsim.errors.UsageError`."""
    if isinstance(provider, str):
        provider_shown = provider.partition("?")[0]  # a url may carry its token
        raise refusal(what, provider_shown, _PROVIDER)
    is_bare = inspect.iscoroutinefunction(provider) or inspect.isasyncgenfunction(provider)
    if isinstance(provider, type) or not callable(provider) or is_bare:
        raise refusal(what, provider, _PROVIDER + (" (@asynccontextmanager makes one)" if is_bare else ""))
    check_arguments(provider, what, 1, _PROVIDER)


def check_runtime_config(tasks: Iterable[Task], provider: object) -> None:
    """Raises :class:`~hudsim.errors.UsageError` for a task that asks for what ``provider`` cannot give."""
    for task in tasks:
        if task.runtime_config is not None:
            given = ", ".join(sorted(task.runtime_config)) or "an empty one"
            raise UsageError(f"task {task.slug}: got runtime_config {given}, and {type(provider).__name__} takes none")


def check_reference(agent: Any, environment: str, *, reveals: bool) -> None:
    """Raises :class:`~hudsim.errors.UsageError` for an agent that needs references where none are revealed."""
    if getattr(agent, "needs_reference", False) and not reveals:
        raise UsageError(
            f"this agent needs the tasks' references, and {environment} is served without; serve it with reveal=True "
            "(--reveal-references)"
        )


def check_protocols(agent: Any, capabilities: Mapping[str, Capability]) -> None:
    """Raises :class:`~hudsim.errors.UsageError` for an agent that works on what is not served."""
    needed, served = getattr(agent, "needs_protocols", ()), capabilities.values()
    if needed and not any(capability.protocol in needed for capability in served):
        there_are = ", ".join(f"{c.name} ({c.protocol})" for c in served) or "nothing"
        raise UsageError(f"this agent works on {' or '.join(needed)}; the environment serves {there_are}")


async def versions_of(provider: Any, tasks: Sequence[Task], agent: Any) -> dict[str, str]:
    """What ``provider`` says of ``tasks`` before they run: the version of each environment that it knows, by name.

    Raises what its ``check`` raises if it cannot run them with ``agent``, once for all. One without a ``check`` (a
    coroutine function of tasks and agent) knows nothing.
    """
    check = getattr(provider, "check", None)
    known = await check(tasks, agent) if inspect.iscoroutinefunction(check) else None
    return dict(known) if isinstance(known, Mapping) else {}
