"""``RobotRun``: what a robot's agent needs of the run that it is called with, and which robot it plays there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from hudsim.capability import Capability
from hudsim.errors import UnknownName, UsageError
from hudsim.wire.session import PROTOCOLS

__all__ = ["RobotRun", "find_robot", "find_token"]


class AskedTask(Protocol):
    """The task of a run, as far as its agent is concerned."""

    @property
    def agent_config(self) -> Mapping[str, Any] | None:
        """What the task asks of the agent. None: nothing."""
        ...


class RunClock(Protocol):
    """The trace of a run, as far as its times are concerned."""

    def now_s(self) -> float:
        """Seconds since the run's start."""
        ...


class RobotRun(Protocol):
    """A live :class:`hudsim.eval.Run`, or anything else with these.

    end
        Set to ``max_steps`` by an agent that stops at its own limit.
    """

    end: Literal["done", "max_steps", "timeout", "error", "lost"] | None

    @property
    def task(self) -> AskedTask:
        """What is run."""
        ...

    @property
    def trace(self) -> RunClock:
        """What has happened in it."""
        ...

    @property
    def prompt_text(self) -> str:
        """The prompt in words; "" if there is none."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Capability]:
        """What the environment serves, by name."""
        ...

    @property
    def bindings(self) -> Mapping[str, Mapping[str, Any]]:
        """What is this run's own, by the capability's name: ``{"robot": {"token": …}}``."""
        ...

    async def reach(self, name: str) -> Capability:
        """The capability ``name`` at a URL that can be dialled from here."""
        ...

    def note(
        self,
        source: str,
        *,
        content: str | None = None,
        data: dict[str, Any] | None = None,
        error: str | None = None,
        started_s: float | None = None,
    ) -> object:
        """Add a step to the run's trace; it began at ``started_s``, or (None) is over as it begins."""
        ...


def find_robot(run: RobotRun, wanted: str | None = None) -> str:
    """The capability that is the run's robot: ``wanted``, else the one with an episode for it, else the only one.

    Raises :class:`~hudsim.errors.UnknownName` if ``wanted`` is no robot here, and
    :class:`~hudsim.errors.UsageError` if there is none, or it cannot be told which of several.
    """
    robots = [name for name, served in run.capabilities.items() if served.protocol in PROTOCOLS]
    if wanted is not None:
        if wanted not in robots:
            raise UnknownName("robot", wanted, robots)
        return wanted
    found = [name for name in robots if find_token(run, name) is not None] or robots
    if len(found) == 1:
        return found[0]
    if not found:
        served = ", ".join(f"{c.name} ({c.protocol})" for c in run.capabilities.values())
        raise UsageError(f"this run has no robot to be played; its environment serves: {served or 'nothing'}")
    raise UsageError(f"this run has {len(found)} robots: {', '.join(found)}; name the one to be played with robot=")


def find_token(run: RobotRun, name: str) -> str | None:
    """What claims the run's episode of the robot ``name``. None: it has none of its own."""
    token = run.bindings.get(name, {}).get("token")
    return None if token is None else str(token)
