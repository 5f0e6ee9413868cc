"""``Shared``: many runs on one placement of another provider."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from hudsim.environment.task import Task
from hudsim.errors import UsageError
from hudsim.eval.local_runtime import LocalRuntime
from hudsim.eval.plugged import check_provider, check_runtime_config, versions_of
from hudsim.eval.pool import Pool, Pooled, scope_of
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.runtime import Runtime
from hudsim.given import given_count

__all__ = ["Shared"]


class Shared(Pooled):
    """Up to ``width`` runs of one environment share one placement of ``inner``; one more waits.

    ``width`` is what one placement can hold: the slots of a vectorised world. What ``inner`` gives for the first task
    of an environment serves the others, too. A :class:`~hudsim.eval.LocalRuntime` of a function, which makes an
    environment for each task, is refused.

    ::

        async with Shared(SubprocessRuntime("env.py"), width=8) as runtime:    # kept for both calls
            await taskset.run(first, runtime=runtime)
            await taskset.run(second, runtime=runtime)
    """

    def __init__(self, inner: Provider, *, width: int) -> None:
        super().__init__()
        check_provider(inner, "Shared")
        if isinstance(inner, LocalRuntime) and inner.makes_each:
            raise UsageError(
                "Shared: got a LocalRuntime of a function, which makes an environment for each run; expected one of a "
                "file or of a live environment, which runs can share"
            )
        self.inner, self.width = inner, given_count(width, "width")
        self._scope = contextlib.AsyncExitStack()

    async def check(self, tasks: Iterable[Task], agent: Agent) -> dict[str, str]:
        """As that of ``inner``."""
        tasks = list(tasks)
        check_runtime_config(tasks, self)
        return await versions_of(self.inner, tasks, agent)

    def _pool(self, task: Task) -> Pool:
        return Pool(self._place, limit=1)

    async def _place(self, task: Task) -> _Placed:
        stack = contextlib.AsyncExitStack()
        return _Placed(await stack.enter_async_context(self.inner(task)), self.width, stack)

    async def __aenter__(self) -> Self:
        if self._users == 0:
            await self._scope.enter_async_context(scope_of(self.inner))
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, tb)
        if self._users == 0:
            await self._scope.aclose()


class _Placed:
    def __init__(self, runtime: Runtime, slots: int, stack: contextlib.AsyncExitStack) -> None:
        self.runtime, self.slots = runtime, slots
        self._stack = stack

    async def stop(self) -> None:
        await self._stack.aclose()
