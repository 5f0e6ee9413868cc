"""``Pool``: served environments that are kept between runs, each used by as many runs at once as it has slots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from hudsim.environment.task import Task
from hudsim.errors import HudsimError, UsageError
from hudsim.eval.runtime import Runtime

__all__ = ["Pool", "Pooled", "Served", "scope_of"]

log = logging.getLogger(__name__)


class Served(Protocol):
    """A served environment that is ours to stop."""

    @property
    def runtime(self) -> Runtime:
        """Where it is, and whether it can be used for one more run."""
        ...

    @property
    def slots(self) -> int | None:
        """How many runs at once. None: any number."""
        ...

    async def stop(self) -> None:
        """Take it down. Idempotent."""
        ...


class Pool:
    """Leases served environments; starts another when all are full, up to ``limit`` of them.

    Another is started only for runs that those on their way have no room for. How much room one has is known once the
    first is up, so until then one is started at a time. One that has died is not leased again.
    """

    def __init__(self, start: Callable[[Task], Awaitable[Served]], *, limit: int | None = None) -> None:
        self._start = start
        self._limit = limit
        self._used: dict[Served, int] = {}
        self._starting = self._waiting = 0
        self._slots = math.inf  # of the last that came up
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def lease(self, task: Task) -> AsyncIterator[Runtime]:
        """One that has room, for as long as the block lasts. Raises what its start raises."""
        served = await self._take() or await self._started(task)
        try:
            yield served.runtime
        finally:
            self._used[served] -= 1
            self._tell()

    async def close(self) -> None:
        """Stop them all."""
        used, self._used = self._used, {}
        await asyncio.gather(*(_stopped(served) for served in used))

    async def _take(self) -> Served | None:
        """One with room. None: another is to be started, and counted in ``_starting`` already."""
        while True:
            await self._bury()
            for served, used in self._used.items():
                if _lives(served) and (served.slots is None or used < served.slots):
                    self._used[served] += 1
                    return served
            if self._is_short():
                self._starting += 1
                return None
            self._waiting += 1
            try:
                await self._changed.wait()
            finally:
                self._waiting -= 1

    def _is_short(self) -> bool:
        """Whether one more run needs one more environment, and may have it."""
        if self._limit is not None and sum(map(_lives, self._used)) + self._starting >= self._limit:
            return False
        return not self._starting or self._waiting >= self._starting * (self._slots - 1)

    async def _started(self, task: Task) -> Served:
        try:
            served = await self._start(task)
            self._used[served] = 1
            self._slots = math.inf if served.slots is None else served.slots
            return served
        finally:
            self._starting -= 1
            self._tell()

    async def _bury(self) -> None:
        while dead := [served for served, used in self._used.items() if not _lives(served) and not used]:
            del self._used[dead[0]]
            await _stopped(dead[0])

    def _tell(self) -> None:
        """Have those that wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()


def _lives(served: Served) -> bool:
    health = served.runtime.health
    return health is None or health.failure() is None


async def _stopped(served: Served) -> None:
    try:
        await served.stop()
    except HudsimError as error:
        log.warning("an environment did not stop well: %s", error.message)


def scope_of(provider: object) -> AbstractAsyncContextManager[Any]:
    """What keeps a provider's environments between runs: the provider itself, if it is a context manager."""
    return provider if isinstance(provider, AbstractAsyncContextManager) else contextlib.nullcontext()


class Pooled(ABC):
    """A provider that keeps what it started while it is used as a context manager, one pool an environment.

    Called outside of ``async with``, it starts an environment for that run alone.
    """

    def __init__(self) -> None:
        self._users = 0
        self._pools: dict[str, Pool] = {}

    @abstractmethod
    def _pool(self, task: Task) -> Pool:
        """A new pool for the environment of ``task``."""

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        """A served environment for one run of ``task``."""
        if task.runtime_config is not None:
            given = ", ".join(sorted(task.runtime_config))
            raise UsageError(f"task {task.slug}: got runtime_config {given}, and {type(self).__name__} takes none")
        async with self:
            if task.env not in self._pools:
                self._pools[task.env] = self._pool(task)
            async with self._pools[task.env].lease(task) as runtime:
                yield runtime

    async def __aenter__(self) -> Self:
        self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._users -= 1
        if self._users == 0:
            pools, self._pools = self._pools, {}
            async with contextlib.AsyncExitStack() as stack:
                for pool in pools.values():
                    stack.push_async_callback(pool.close)
