"""``Watch``: how long the stages of runs take, seen from outside."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from hudsim.environment import Task
from hudsim.eval import Job, Provider, Runtime
from hudsim.net import RpcClient, connect

__all__ = ["STAGES", "Watch"]

T = TypeVar("T")

_TIMED = ("provision", "connect", "hello", "start", "agent", "grade", "bye", "hang up", "commit")

STAGES = (*_TIMED, "rest", "run")
"""Of a run, in order; ``rest`` is what none of the others holds, ``run`` all of it."""


class Watch:
    """One run after another: each run's nanoseconds by stage."""

    def __init__(self) -> None:
        self.runs: list[Counter[str]] = []

    def timed(self, stage: str, work: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """``work``, whose time counts for a stage; a ``run`` begins the next run."""

        async def watched(*args: Any, **options: Any) -> T:
            if stage == "run":
                self.runs.append(Counter())
            began_ns = time.perf_counter_ns()
            try:
                return await work(*args, **options)
            finally:
                self.runs[-1][stage] += time.perf_counter_ns() - began_ns

        return watched

    def provider(self, provider: Provider) -> Provider:
        """``provider``, watched."""

        @asynccontextmanager
        async def lease(task: Task) -> AsyncIterator[Runtime]:
            async with AsyncExitStack() as stack:
                yield await self.timed("provision", stack.enter_async_context)(provider(task))

        return lease

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Meanwhile the control channel and the store are watched; neither knows of it."""
        plain = RpcClient.call

        def call(rpc: RpcClient, method: str, **params: Any) -> Awaitable[Any]:
            return self.timed(method.removeprefix("tasks."), plain)(rpc, method, **params)

        with (
            patch("hudsim.environment.client.connect", self.timed("connect", connect)),
            patch.object(RpcClient, "call", call),
            patch.object(RpcClient, "close", self.timed("hang up", RpcClient.close)),
            patch.object(Job, "finish", self.timed("commit", Job.finish)),
        ):
            yield

    def medians(self, warm_up: int) -> dict[str, float]:
        """The median microseconds of each stage, over all runs but the first ``warm_up``."""
        runs = self.runs[warm_up:]
        for one in runs:
            one["rest"] = one["run"] - sum(one[stage] for stage in _TIMED)
        return {stage: round(statistics.median(one[stage] for one in runs) / 1e3, 1) for stage in STAGES}
