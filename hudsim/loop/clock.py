"""Clocks: the monotonic one, and the protocol that a test's fake one follows."""

from __future__ import annotations

import functools
import secrets
import time
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "MonotonicClock", "clock_id"]


@functools.cache
def clock_id() -> str:
    """Which monotonic clock this process reads: two processes that say the same may compare their times.

    On Linux the kernel's boot id; elsewhere one that no other process shares.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return secrets.token_hex(16)


class Clock(Protocol):
    """Nanoseconds that only go forward, from an origin that means nothing."""

    def now_ns(self) -> int:
        """Now."""
        ...

    def sleep_until(self, deadline_ns: int) -> None:
        """Return at ``deadline_ns`` or a little later; at once if it has passed."""
        ...


class MonotonicClock:
    """The system's monotonic clock. Setting the wall clock does not move it.

    ``spin_ns`` before a deadline it stops sleeping and spins: the kernel wakes a sleeper 50–150 µs late, and
    at 50 Hz the spin costs half a percent of a core.
    """

    def __init__(self, spin_ns: int = 200_000) -> None:
        self._spin_ns = spin_ns

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, deadline_ns: int) -> None:
        now = time.monotonic_ns
        rest = deadline_ns - self._spin_ns - now()
        if rest > 0:
            time.sleep(rest * 1e-9)
        while now() < deadline_ns:
            pass
