from __future__ import annotations

import asyncio
import threading

import pytest

from hudsim.coding.steps import to_its_end
from tests.asyncrun import on_loop


@on_loop
async def test_whoever_is_cancelled_waits_until_the_work_has_ended() -> None:
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        free.wait(10)
        ended.set()

    waiting = asyncio.ensure_future(to_its_end(work))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(3):
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert not waiting.done()
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


@on_loop
async def test_what_the_work_gives_or_raises_is_given_and_raised() -> None:
    assert await to_its_end(pow, 2, 5) == 32
    with pytest.raises(ZeroDivisionError):
        await to_its_end(divmod, 1, 0)
