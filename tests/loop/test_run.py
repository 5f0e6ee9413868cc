from __future__ import annotations

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
