"""``run``: one coroutine as a whole program, on uvloop, ended by SIGINT or SIGTERM within two seconds."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["LIVING", "SWITCH_INTERVAL_S", "exit_hard", "new_event_loop", "own_process", "run"]

log = logging.getLogger(__name__)

R = TypeVar("R")

SWITCH_INTERVAL_S = 5e-4
"""How long a Python thread may hold the GIL before it is asked for, in processes that hudsim owns.

With CPython's 5 ms a thread that computes delays a 50 Hz tick by 4.5 ms (p99); with this by 0.9 ms.
"""

_GRACE_S = 1.7
_LEFT_S = 1.0
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
    128 + the signal's number, and so do the children that hudsim spawned. What ``main`` leaves behind on the loop is
    cancelled; what does not let itself be cancelled within a second is left.
    """
    own_process()
    caught: list[int] = []
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(main)

    def on_signal(number: int) -> None:
        task.cancel()

    def at_once(number: int, frame: object) -> None:
        """Between any two bytecodes of the main thread: the loop may be blocked by whatever runs on it."""
        if caught:
            exit_hard(128 + number)
        caught.append(number)
        _exit_hard_after(_GRACE_S, 128 + number)

    restore = [_handle(loop, number, on_signal, at_once) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        if caught:
            raise KeyboardInterrupt from None
        raise
    finally:
        _wind_up(loop)
        for undo in restore:
            undo()
        asyncio.set_event_loop(None)
        loop.close()


def _handle(
    loop: asyncio.AbstractEventLoop,
    number: int,
    on_loop: Callable[[int], None],
    at_once: Callable[[int, Any], None],
) -> Callable[[], Any]:
    before = signal.getsignal(number)
    loop.add_signal_handler(number, on_loop, number)
    signal.signal(number, at_once)  # the loop is woken by the interpreter's descriptor, whatever the handler is

    def undo() -> None:
        loop.remove_signal_handler(number)
        signal.signal(number, before)

    return undo


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left on the loop, and wait for it, but not for ever."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        _, still = loop.run_until_complete(asyncio.wait(left, timeout=_LEFT_S))
        for task in still:
            log.warning("%s does not end; it is left behind", task.get_name())
    for ending in (loop.shutdown_asyncgens, loop.shutdown_default_executor):
        with contextlib.suppress(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(ending(), _LEFT_S))


def exit_hard(code: int) -> None:
    """End this process now, and the children that are registered in ``LIVING``: a stopped one would outlive it."""
    for pid in list(LIVING):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(code)


LIVING: set[int] = set()
"""Children that lead process groups of their own."""


def _exit_hard_after(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, exit_hard, (code,))
    timer.daemon = True
    timer.start()
