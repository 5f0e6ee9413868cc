"""``Bridge``: anything that an environment can serve, a robot world or a coding workspace alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hudsim.capability import Capability

__all__ = ["Bridge", "Episode"]


@dataclass(frozen=True)
class Episode(Mapping[str, Any]):
    """One episode that has been started: its ``prompt`` and the ``token`` that claims it.

    Also reads as a mapping, ``ep["prompt"]``, so that code written for a plain dict goes on working.
    """

    prompt: str
    token: str
    seed: int | None = None
    slot: int = 0

    def __getitem__(self, key: str) -> Any:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


class Bridge(ABC):
    """A thing that an environment serves: start it, reset it for an episode, grade the episode, stop it.

    An environment calls ``start`` once, then for each episode ``reset`` → (the agent works through
    ``capability``) → ``result``, at last ``stop``. All are coroutines on one event loop and none blocks it.
    """

    @property
    def slots(self) -> int | None:
        """How many episodes it can hold at once. None: any number."""
        return 1

    @abstractmethod
    async def start(self) -> None:
        """Bring it up. Idempotent: a second call does nothing."""

    @abstractmethod
    async def stop(self) -> None:
        """Take it down. Idempotent; leaves no process, port or file behind."""

    @abstractmethod
    def capability(self, name: str) -> Capability:
        """How an agent reaches it, under ``name``. Only after ``start``."""

    @abstractmethod
    async def reset(self, **task_args: Any) -> Episode:
        """Start an episode. What it is is a function of ``task_args`` (with ``seed``) alone.

        Raises :class:`~hudsim.errors.NoFreeSlot` if every slot holds an episode.
        """

    @abstractmethod
    async def result(self, token: str | None = None) -> Any:
        """Grade the episode of ``token`` (None: the only one) and free its slot."""
