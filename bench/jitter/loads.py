"""``LOADS``: what goes on beside the ticks."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from hudsim.bench.jitter.compute import compute
from hudsim.bridges.testcard import TestCardBridge

__all__ = ["LOADS", "Crowded", "beside"]

LOADS = {
    "idle": "nothing else",
    "gil": "a Python thread that computes without end in the world's own process",
    "core": "a process that keeps one core busy",
    "health": "a process that asks for /healthz without pause",
}


class Crowded(TestCardBridge):
    """A world that shares its interpreter with a thread that never gives it up by itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        threading.Thread(target=compute, daemon=True).start()


@contextlib.contextmanager
def beside(load: str, port: int) -> Iterator[None]:
    """While ``load`` goes on, if it has a process of its own; ``port``: the world's."""
    if load not in ("core", "health"):
        yield
        return
    command = [sys.executable, "-m", "hudsim.bench.jitter.neighbour", load, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield
        finally:
            process.kill()
