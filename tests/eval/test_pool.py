"""Which of the served environments a run is given, and when another is started."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from hudsim.environment import Task
from hudsim.errors import EnvironmentFailed
from hudsim.eval.pool import Pool
from hudsim.eval.runtime import Health, Runtime
from tests.asyncrun import on_loop

TASK = Task(env="e", id="t")


class Served:
    """An environment of which there is nothing but what a pool asks."""

    def __init__(self, number: int, slots: int | None) -> None:
        self.runtime = Runtime(f"ws://127.0.0.1:{number}", health=Health(lambda: self.dead))
        self.slots = slots
        self.dead: EnvironmentFailed | None = None
        self.stopped = 0

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.stopped += 1


class Pooling(Pool):
    """A pool that keeps what it has started; a start takes a few turns of the loop, and fails while ``broken``."""

    def __init__(self, slots: int | None, limit: int | None = None) -> None:
        super().__init__(self._serve, limit=limit)
        self.all: list[Served] = []
        self.broken = False
        self._each = slots

    async def _serve(self, task: Task) -> Served:
        for _ in range(5):
            await asyncio.sleep(0)
        if self.broken:
            raise EnvironmentFailed("broken")
        self.all.append(Served(len(self.all) + 1, self._each))
        return self.all[-1]

    async def leased(self, stack: AsyncExitStack, times: int = 1) -> list[int]:
        """Which was leased, so many times at once, for as long as ``stack`` lasts."""
        runtimes = await asyncio.gather(*(stack.enter_async_context(self.lease(TASK)) for _ in range(times)))
        return sorted(runtime.address.port for runtime in runtimes)


@on_loop
async def test_as_many_are_started_as_the_runs_need() -> None:
    for slots, runs, expected in ((4, 4, 1), (4, 5, 2), (4, 8, 2), (1, 3, 3), (None, 50, 1)):
        pool = Pooling(slots)
        async with AsyncExitStack() as stack:
            await pool.leased(stack, runs)
            assert len(pool.all) == expected
        await pool.close()
        assert [served.stopped for served in pool.all] == [1] * expected


@on_loop
async def test_one_that_has_died_is_not_leased_again_though_others_have_it_still() -> None:
    pool = Pooling(4)
    async with AsyncExitStack() as stack:
        assert await pool.leased(stack, 2) == [1, 1]
        pool.all[0].dead = EnvironmentFailed("it died")
        assert await pool.leased(stack) == [2]
        assert pool.all[0].stopped == 0
    async with AsyncExitStack() as stack:
        assert await pool.leased(stack) == [2]
    assert [served.stopped for served in pool.all] == [1, 0]


@on_loop
async def test_what_all_had_is_replaced_by_one_when_it_dies() -> None:
    pool = Pooling(8)
    for dying in range(3):
        async with AsyncExitStack() as stack:
            assert await pool.leased(stack, 8) == [dying + 1] * 8
            pool.all[dying].dead = EnvironmentFailed("it died")
    assert [served.stopped for served in pool.all] == [1, 1, 0]


@on_loop
async def test_a_dead_one_does_not_count_against_the_limit() -> None:
    pool = Pooling(2, limit=1)
    async with AsyncExitStack() as stack:
        await pool.leased(stack)
        pool.all[0].dead = EnvironmentFailed("it died")
        assert await pool.leased(stack) == [2]


@on_loop
async def test_a_start_that_fails_is_the_trouble_of_its_run_and_the_next_waits_for_another() -> None:
    pool = Pooling(2)
    pool.broken = True
    async with AsyncExitStack() as stack:
        first = asyncio.create_task(pool.leased(stack))
        second = asyncio.create_task(pool.leased(stack))
        with pytest.raises(EnvironmentFailed):
            await first
        pool.broken = False
        assert await second == [1]


@on_loop
async def test_a_run_that_is_cancelled_as_it_waits_leaves_its_place() -> None:
    pool = Pooling(1, limit=1)
    async with AsyncExitStack() as stack:
        await pool.leased(stack)
        waiting = asyncio.create_task(pool.leased(stack))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with AsyncExitStack() as stack:
        assert await pool.leased(stack) == [1]
