"""``Runtime``: a served environment's address; also the provider that attaches to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from hudsim.environment.task import Task
from hudsim.errors import HudsimError
from hudsim.net import Address

__all__ = ["Runtime"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """``Runtime("ws://host:port/?bearer=…")``: an environment that somebody serves; stopping leaves it running.

    token
        Its bearer token, if the URL does not carry it. None: it asks for none.
    failure
        Says why it can be used no more; None as long as it can. Whoever only attaches to it does not know.

    Raises :class:`~hudsim.errors.UsageError` for what is no ``ws://`` or ``wss://`` URL.
    """

    url: str
    token: str | None = None
    failure: Callable[[], HudsimError | None] = field(default=lambda: None, compare=False, repr=False)

    def __post_init__(self) -> None:
        Address.parse(self.url)

    @property
    def address(self) -> Address:
        """The address of its control channel."""
        address = Address.parse(self.url).at("/control")
        return address if self.token is None else replace(address, bearer=self.token)

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        """The same for every task."""
        yield self
