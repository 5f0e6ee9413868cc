"""From an agent's name and settings to the agent."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudsim.errors import UnknownName, UsageError
from hudsim.registry.arguments import Arguments, make
from hudsim.registry.entry import Entry
from hudsim.registry.names import agents, find, policies, served_policy
from hudsim.robot.model import Model

if TYPE_CHECKING:
    from hudsim.agents import Oracle
    from hudsim.eval.protocols import Agent

__all__ = ["agent", "oracle"]

_ANSWER, _SCRIPT = "answer:", "script:"


def agent(name: str, settings: Mapping[str, Any] | None = None) -> Agent:
    """The agent of ``name``, with ``settings`` for what makes it.

    A name that is none of :func:`agents` is ``answer:TEXT``, ``script:FILE``, ``openpi:ws://HOST:PORT``, or
    ``module:attr`` or ``file.py:attr``: a coroutine function of a run, an object that can be called as one, a Model, or
    a class or function that makes one of these.

    Raises :class:`~hudsim.errors.UnknownName` for a name or setting that is not there, and
    :class:`~hudsim.errors.UsageError` for what is no agent and makes none.
    """
    settings = settings or {}
    if name.startswith(_ANSWER):
        from hudsim.agents import Answer

        _NOTHING.check(name, settings)
        return Answer(name.removeprefix(_ANSWER))
    if name.startswith(_SCRIPT):
        from hudsim.agents import Script

        _NOTHING.check(name, settings)
        return Script(name.removeprefix(_SCRIPT))
    given = Entry(name, name, "") if ":" in name else None
    entry = served_policy(name) or find(name, "agent", given, agents())
    found = entry.find()
    if _is_whole(found) or not callable(found):
        _NOTHING.check(name, settings)
        return _whole(entry, found)
    Arguments.of(found).check(name, settings)
    _refuse_plain(name, found, {**entry.args, **settings})
    return _whole(entry, make(f"agent {name}", found, {**entry.args, **settings}))


def _refuse_plain(name: str, found: Any, args: Mapping[str, Any]) -> None:
    """A function that asks for what nobody gives it is likely meant to be an agent itself."""
    if inspect.isfunction(found):
        try:
            inspect.signature(found).bind(**args)
        except TypeError as error:
            raise UsageError(
                f"agent {name} is a plain function: an agent is a coroutine function of a run (async def), and what "
                f"makes one needs nothing but its settings ({error})"
            ) from None


def oracle() -> Oracle:
    """An oracle that plays the policies which references name."""
    from hudsim.agents import Oracle

    return Oracle(policy=_referred)


def _referred(name: str, settings: Mapping[str, Any]) -> Agent:
    """A reference comes from a peer, so that nothing is called which is not known to be a policy."""
    if name not in policies():
        found = Entry(name, name, "").find() if ":" in name else None
        if not (isinstance(found, type) and issubclass(found, Model)):
            raise UnknownName("policy", name, [*policies(), "module:attr of a Model class"])
    return agent(name, settings)


_NOTHING = Arguments({}, open=False)


def _is_whole(thing: Any) -> bool:
    """Whether it is an agent by itself, and nothing that makes one."""
    if isinstance(thing, type) or not callable(thing):
        return False
    return inspect.iscoroutinefunction(thing) or inspect.iscoroutinefunction(type(thing).__call__)


def _whole(entry: Entry, thing: Any) -> Agent:
    if isinstance(thing, Model):
        from hudsim.robot.agent import RobotAgent
        from hudsim.robot.chunks import make_chunks

        return RobotAgent(thing, chunks=make_chunks(*entry.chunks) if entry.chunks else None)
    if not _is_whole(thing):
        raise UsageError(
            f"agent {entry.name} is a {type(thing).__name__}; expected a coroutine function of a run, an agent, or a "
            "hudsim Model or RobotAgent"
        )
    try:
        inspect.signature(thing).bind(None)
    except TypeError as error:
        raise UsageError(f"agent {entry.name} cannot be called with a run alone: {error}") from None
    return thing  # type: ignore[no-any-return]
