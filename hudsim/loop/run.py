"""``run``: one coroutine as a whole program, on uvloop, ended by SIGINT or SIGTERM within two seconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["SWITCH_INTERVAL_S", "new_event_loop", "own_process", "run"]

R = TypeVar("R")

SWITCH_INTERVAL_S = 5e-4
"""How long a Python thread may hold the GIL before it is asked for, in processes that hudsim owns.

With CPython's 5 ms a thread that computes delays a 50 Hz tick by 4.5 ms (p99); with this by 0.9 ms.
"""

_GRACE_S = 1.7
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def own_process() -> None:
    """Settle a process that hudsim owns: the switch interval, and freed memory kept for the next frame.

    glibc gives a freed block of a camera frame's size back to the kernel, so that each frame pays for its
    pages anew (75 page faults for two 224² images). Elsewhere than on glibc nothing is done about that.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A uvloop event loop, or asyncio's where there is no uvloop (Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(main: Coroutine[Any, Any, R]) -> R:
    """Run ``main`` on a new loop in the main thread; returns what it returns.

    SIGINT and SIGTERM cancel it, so that its ``finally`` clauses clean up; KeyboardInterrupt is raised
    afterwards. If it has not ended 1.7 s later, or a second signal comes, the process exits hard with
    128 + the signal's number (children that hudsim spawned die with it).
    """
    own_process()
    caught: list[int] = []
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)

        def on_signal(number: int) -> None:
            if caught:
                os._exit(128 + number)
            caught.append(number)
            _exit_hard_after(_GRACE_S, 128 + number)
            task.cancel()

        restore = [_add_handler(loop, number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            return runner.run(_await(task))
        except asyncio.CancelledError:
            if caught:
                raise KeyboardInterrupt from None
            raise
        finally:
            for undo in restore:
                undo()


async def _await(task: asyncio.Task[R]) -> R:
    return await task


def _add_handler(loop: asyncio.AbstractEventLoop, number: int, handler: Callable[[int], None]) -> Callable[[], Any]:
    loop.add_signal_handler(number, handler, number)
    return lambda: loop.remove_signal_handler(number)


def _exit_hard_after(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()
