"""``Attached``: a bridge in an environment's hands, which knows whose episode is whose."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from hudsim.bridge import Bridge, Episode
from hudsim.capability import Capability
from hudsim.errors import EpisodeError, EpisodeOver, NoFreeSlot, words
from hudsim.loop.bounded import bounded, is_cancellation

__all__ = ["Attached", "Holder", "current_holder"]

log = logging.getLogger(__name__)

_FREE_S = 5.0


class Holder(Protocol):
    """Whoever starts episodes: a session's turn."""

    held: list[tuple[Attached, Episode]]
    forfeit: str | None
    waits_for: str | None


current_holder: ContextVar[Holder | None] = ContextVar("hudsim_current_holder", default=None)
"""Whose template runs now; set in the task that runs it."""


class Attached:
    """What ``env.robot(...)`` returns: ``reset`` and ``result`` of a bridge, for the template that runs.

    An episode belongs to the session that started it: ``result()`` without a token is that session's own, its token
    reaches that session's agent as a binding, and it is freed when the session ends. While all slots are taken by
    other sessions, ``reset`` waits for one.

    name
        The capability's name.
    bridge
        The bridge itself. Only after the environment has started.
    """

    def __init__(self, name: str, make: Callable[[Mapping[str, Any]], Bridge]) -> None:
        self.name = name
        self._make = make
        self._bridge: Bridge | None = None
        self._free: asyncio.Semaphore | None = None

    async def start(self, settings: Mapping[str, Any]) -> None:
        """Make the bridge with the environment's settings and bring it up."""
        bridge = self._make(settings)
        self._bridge = bridge
        await bridge.start()
        self._free = None if bridge.slots is None else asyncio.Semaphore(bridge.slots)

    async def stop(self) -> None:
        """Take it down. Idempotent."""
        bridge, self._bridge = self._bridge, None
        if bridge is not None:
            await bridge.stop()

    @property
    def bridge(self) -> Bridge:
        if self._bridge is None:
            raise EpisodeError(f"{self.name} is not running: its environment has not been started")
        return self._bridge

    def capability(self) -> Capability:
        """How an agent reaches it now."""
        return self.bridge.capability(self.name)

    async def reset(self, **task_args: Any) -> Episode:
        """Start an episode for the session whose template this is; waits for a slot while others hold them all.

        Raises :class:`~hudsim.errors.NoFreeSlot` if this session itself holds them all, and what the bridge raises.
        """
        holder = current_holder.get()
        if self._free is not None:
            own = 0 if holder is None else sum(attached is self for attached, _ in holder.held)
            if own and own == self.bridge.slots:
                raise NoFreeSlot(f"{self.name}: this session holds all {own} slots; ask for result() before reset()")
            await self._room(self._free, holder)
        try:
            episode = await self.bridge.reset(**task_args)
        except BaseException:
            self._release()
            raise
        if holder is not None:
            holder.held.append((self, episode))
        return episode

    async def _room(self, free: asyncio.Semaphore, holder: Holder | None) -> None:
        """A slot, in whose wait the holder says what it waits for."""
        if holder is not None and free.locked():
            holder.waits_for = f"{self.name}, which has {self.bridge.slots}: other sessions hold all of them"
        try:
            await free.acquire()
        finally:
            if holder is not None:
                holder.waits_for = None

    async def result(self, token: str | None = None) -> Any:
        """Grade an episode and free its slot. ``token`` None: this session's own.

        Raises :class:`~hudsim.errors.EpisodeOver` if this session has none, or more than one.
        """
        holder = current_holder.get()
        if holder is None:
            return await self._graded(token)
        own = [episode for attached, episode in holder.held if attached is self and token in (None, episode.token)]
        if len(own) != 1:
            which = f"the episode {token!r}" if token is not None else "one episode"
            raise EpisodeOver(f"{self.name}: this session has {len(own)} to be graded, expected {which}")
        holder.held.remove((self, own[0]))
        record = await self._graded(own[0].token)
        if isinstance(record, Mapping) and not record.get("is_error") and str(record.get("end")).startswith("aborted"):
            holder.forfeit = str(record["end"])
        return record

    async def free(self, episode: Episode) -> None:
        """Give an episode up that nobody will ask for; it is out of ``held`` already."""
        try:
            await bounded(lambda: self._graded(episode.token), f"freeing an episode of {self.name}", timeout_s=_FREE_S)
        except BaseException as error:
            if is_cancellation(error):
                raise
            log.debug("%s: freeing an episode raised %s: %s", self.name, type(error).__name__, words(error))

    async def _graded(self, token: str | None) -> Any:
        try:
            return await self.bridge.result(token)
        finally:
            self._release()

    def _release(self) -> None:
        if self._free is not None:
            self._free.release()
