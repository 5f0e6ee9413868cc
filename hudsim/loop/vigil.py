"""``Vigil``: staying awake for an answer that usually comes at once."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import TypeVar

from hudsim.errors import UsageError

__all__ = ["Vigil"]

R = TypeVar("R")

_SETTING, _USUAL, _LONGEST_US = "HUDSIM_AWAKE_US", "400", 10_000
_MOST_VAIN = 4


@functools.cache
def _most_ns() -> int:
    setting = os.environ.get(_SETTING, _USUAL)
    with contextlib.suppress(ValueError):
        if 0 <= float(setting) <= _LONGEST_US:
            return int(float(setting) * 1e3)
    raise UsageError(f"{_SETTING}: got {setting!r}, expected microseconds from 0 to {_LONGEST_US}")


class Vigil:
    """Looks again and again for a moment, before whoever waits goes to sleep.

    A thread that sleeps is woken 20 to 60 µs late, and its caches are cold then, so that its next steps take twice as
    long: more than all else of a round trip between processes. Staying awake takes a core's time instead. So it is done
    for ``HUDSIM_AWAKE_US`` at most (an environment variable; 400, and 0 is never), and as long as it pays: after n
    times in vain, the next 2ⁿ - 1 waits (15 at most) go to sleep at once.

    Raises :class:`~hudsim.errors.UsageError` for a setting that is no such time.
    """

    __slots__ = ("_most_ns", "_rest", "_vain")

    def __init__(self) -> None:
        self._most_ns = _most_ns()
        self._vain = self._rest = 0

    def pays(self) -> bool:
        """Whether this wait is one to stay awake for. Ask once for each."""
        if self._rest:
            self._rest -= 1
            return False
        return self._most_ns > 0

    def watch(self, look: Callable[[], R], most_s: float | None = None) -> R:
        """What ``look`` gives as soon as that is true, after ``most_s`` at the latest; else what it gave last.

        ``look`` is to release the interpreter's lock, as a system call does: others may be busy with the answer.
        """
        most_ns = self._most_ns if most_s is None else min(self._most_ns, int(most_s * 1e9))
        end_ns = time.monotonic_ns() + most_ns
        while not (found := look()):
            if time.monotonic_ns() >= end_ns:
                self._vain = min(self._vain + 1, _MOST_VAIN)
                self._rest = (1 << self._vain) - 1
                return found
            os.sched_yield()
        self._vain = 0
        return found
