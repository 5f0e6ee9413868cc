"""``Runtime``: a served environment's address; also the provider that attaches to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from hudsim.environment.client import ControlClient
from hudsim.environment.task import Task
from hudsim.errors import HudsimError, UnknownName, UsageError
from hudsim.eval.plugged import check_reference, check_runtime_config
from hudsim.eval.protocols import Agent
from hudsim.given import given_text
from hudsim.net import Address

__all__ = ["Health", "Runtime"]


class Health:
    """Of an environment that we serve ourselves. ``look`` says why it died; None as long as it lives."""

    def __init__(self, look: Callable[[], HudsimError | None] = lambda: None) -> None:
        self._look = look
        self._condemned: HudsimError | None = None

    def failure(self) -> HudsimError | None:
        """Why it can be used no more. None: it can."""
        return self._look() or self._condemned

    def condemn(self, error: HudsimError) -> None:
        """It was found to be of no use, for ``error``: it is given to no further run."""
        self._condemned = error


@dataclass(frozen=True, slots=True)
class Runtime:
    """``Runtime("ws://host:port/?bearer=…")``: an environment that somebody serves; stopping leaves it running.

    token
        Its bearer token, if the URL does not carry it. None: it asks for none.
    health
        Whether it can be used. None: it is somebody else's, who sees to that.

    Raises :class:`~hudsim.errors.UsageError` for what is no ``ws://`` or ``wss://`` URL, and a token that is no text.
    """

    url: str
    token: str | None = None
    health: Health | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        Address.parse(given_text(self.url, "Runtime", "ws://host:port/?bearer=… or wss://…"))
        if self.token is not None and not isinstance(self.token, str):
            raise UsageError(f"Runtime: got a {type(self.token).__name__} for the token, expected a text")

    @property
    def address(self) -> Address:
        """The address of its control channel."""
        address = Address.parse(self.url).at("/control")
        return address if self.token is None else replace(address, bearer=self.token)

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        """The same for every task."""
        yield self

    async def check(self, tasks: Iterable[Task], agent: Agent) -> dict[str, str]:
        """Whether it is there, lets us in, has these tasks and reveals what ``agent`` needs; its environment's version.

        Raises :class:`~hudsim.errors.LinkError` and :class:`~hudsim.errors.UsageError`, as each run would.
        """
        tasks = list(tasks)
        check_runtime_config(tasks, self)
        async with await ControlClient.connect(self.address) as client:
            served = client.environment
            check_reference(agent, f"environment {served}", reveals=client.manifest["reveals"])
            there_are = [template["id"] for template in await client.list_tasks()]
            version = client.manifest["env"]["version"]
        for task in tasks:
            if task.id not in there_are:
                raise UnknownName(f"task in environment {served} at {self.address.netloc}", task.id, there_are)
        return {served: version}
