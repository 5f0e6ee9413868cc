"""Waiting for what raises anything and does not let itself be cancelled."""

from __future__ import annotations

import asyncio
import logging

import pytest

from hudsim.loop.bounded import bounded, is_cancellation
from tests.asyncrun import on_loop
from tests.stubborn import stubborn


@on_loop
async def test_what_it_gives_is_given() -> None:
    async def three() -> int:
        await asyncio.sleep(0)
        return 3

    assert await bounded(three, "counting", timeout_s=None) == 3


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
@on_loop
async def test_what_it_raises_is_raised_to_whoever_waits_and_to_nobody_else(error: BaseException) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(type(error)) as raised:
        await bounded(fails, "failing", timeout_s=5.0)
    assert not is_cancellation(raised.value)


@on_loop
async def test_what_takes_too_long_is_cancelled() -> None:
    ended = asyncio.Event()

    async def sleeps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(TimeoutError, match=r"sleeping: not done within 0\.05 s"):
        await bounded(sleeps, "sleeping", timeout_s=0.05)
    assert ended.is_set()


@on_loop
async def test_what_does_not_let_itself_be_cancelled_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    released = asyncio.Event()
    with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError):
        await bounded(lambda: stubborn(released), "the mule", timeout_s=0.05)
    assert "the mule does not let itself be stopped; it is left behind" in caplog.text
    released.set()


@on_loop
async def test_whoever_waits_can_be_cancelled_whatever_it_waits_for() -> None:
    released = asyncio.Event()
    waiting = asyncio.create_task(bounded(lambda: stubborn(released), "the mule", timeout_s=None))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=10.0)
    assert waiting.cancelled()
    released.set()


@on_loop
async def test_a_cancellation_is_told_from_one_that_was_raised() -> None:
    seen: list[bool] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            seen.append(is_cancellation(error))
            raise

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert seen == [True]
    assert not is_cancellation(asyncio.CancelledError())
    assert not is_cancellation(KeyError())
