from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hudsim.loop import run

SLEEPS = """
import asyncio, sys, time
from hudsim.loop import run

async def main():
    print("up", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        {finally_}

try:
    run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


@contextmanager
def program(finally_: str) -> Iterator[subprocess.Popen[str]]:
    code = SLEEPS.format(finally_=finally_)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_finally_clauses_run_and_raises_keyboard_interrupt(number: signal.Signals) -> None:
    with program('print("cleaned", flush=True)') as process:
        process.send_signal(number)
        said, _ = process.communicate(timeout=10)
        assert said == "cleaned\ninterrupted\n"
        assert process.returncode == 130


def test_a_cleanup_that_hangs_is_cut_short() -> None:
    with program("time.sleep(60)") as process:
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 10


def test_what_main_returns_is_returned_and_what_it_raises_is_raised() -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise LookupError("no")

    assert run(seven()) == 7
    with pytest.raises(LookupError, match="no"):
        run(fails())


def test_a_loop_that_is_blocked_is_ended_all_the_same() -> None:
    code = SLEEPS.replace("await asyncio.sleep(60)", "time.sleep(60)").format(finally_="pass")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM


def test_a_task_that_does_not_let_itself_be_cancelled_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn() -> None:
        for _ in range(20):  # in the end it goes, so that this test leaves nothing
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                continue

    async def main() -> int:
        task = asyncio.create_task(stubborn(), name="stubborn")
        await asyncio.sleep(0)
        return 0 if task.done() else 7

    began = time.monotonic()
    assert run(main()) == 7
    assert time.monotonic() - began < 10
    assert "stubborn does not end" in caplog.text


def test_what_is_left_on_the_loop_is_cancelled() -> None:
    ended: list[str] = []

    async def left() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("left")

    async def main() -> None:
        tasks.append(asyncio.create_task(left()))
        await asyncio.sleep(0)

    tasks: list[asyncio.Task[None]] = []
    run(main())
    assert ended == ["left"]
