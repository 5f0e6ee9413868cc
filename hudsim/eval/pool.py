"""``Pool``: served environments that are kept between runs, each used by as many runs at once as it has slots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
        """Where it is."""
        ...

    @property
    def slots(self) -> int | None:
        """How many runs at once. None: any number."""
        ...

    @property
    def alive(self) -> bool:
        """Whether it may be used for one more run."""
        ...

    async def stop(self) -> None:
        """Take it down. Idempotent."""
        ...


class Pool:
    """Leases served environments; starts another when all are full, up to ``limit`` of them.

    How many slots one has is known once the first is up, so until then only one is started. One that has died is
    not leased again.
    """

    def __init__(self, start: Callable[[Task], Awaitable[Served]], *, limit: int | None = None) -> None:
        self._start = start
        self._limit = limit
        self._used: dict[Served, int] = {}
        self._starting = 0
        self._known = False
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def lease(self, task: Task) -> AsyncIterator[Runtime]:
        """One that has room, for as long as the block lasts. Raises what its start raises."""
        served = await self._take() or await self._started(task)
        try:
            yield served.runtime
        finally:
            async with self._changed:
                self._used[served] -= 1
                self._changed.notify_all()

    async def close(self) -> None:
        """Stop them all."""
        used, self._used = self._used, {}
        await asyncio.gather(*(_stopped(served) for served in used))

    async def _take(self) -> Served | None:
        """One with room. None: another is to be started, and counted in ``_starting`` already."""
        async with self._changed:
            while True:
                await self._bury()
                for served, used in self._used.items():
                    if served.slots is None or used < served.slots:
                        self._used[served] += 1
                        return served
                full = self._limit is not None and len(self._used) + self._starting >= self._limit
                if not full and (self._known or not self._starting):
                    self._starting += 1
                    return None
                await self._changed.wait()

    async def _started(self, task: Task) -> Served:
        served: Served | None = None
        try:
            served = await self._start(task)
        finally:
            async with self._changed:
                self._starting -= 1
                if served is not None:
                    self._known = True
                    self._used[served] = 1
                self._changed.notify_all()
        return served

    async def _bury(self) -> None:
        for served in [served for served, used in self._used.items() if not served.alive and not used]:
            del self._used[served]
            await _stopped(served)


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
