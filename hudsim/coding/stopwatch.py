"""``Stopwatch``: how long sandboxes have had for their work, on a machine that they share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hudsim.coding.processes import Processes

__all__ = ["Stopwatch", "Times", "times_of"]

Times = Mapping[str, tuple[int, int]]
"""By thread: how long it has run, and how long it could have but for want of a processor [ns]."""


class Stopwatch:
    """Time in which processes ran, or slept; not that in which they stood in line for a processor.

    So what takes its time alone does so beside a hundred others, and what hangs is known as soon, asleep or busy. Who
    starts hundreds of processes, which stand in line behind each other, gains nothing: some of them run meanwhile.

    read
        Their times now: see :func:`times_of`.
    clock
        In seconds, as :func:`time.monotonic`.
    """

    def __init__(self, read: Callable[[], Times], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._times = read()
        self._began_s = self._at_s = clock()
        self._had_s = 0.0

    @property
    def wall_s(self) -> float:
        """Since it was made."""
        return self._clock() - self._began_s

    def look(self) -> float:
        """How long they have had [s]. To be asked a few times a second: of what ended meanwhile nothing is known."""
        now_s, times = self._clock(), self._read()
        passed_s, self._at_s = now_s - self._at_s, now_s
        before, self._times = self._times, times
        ran_s, stood_s = (
            sum(task[which] - before.get(name, (0, 0))[which] for name, task in times.items()) / 1e9 for which in (0, 1)
        )
        self._had_s += max(passed_s - stood_s, min(passed_s, ran_s))
        return self._had_s


def times_of(firsts: Iterable[int | None]) -> Times:
    """Of sandboxes, by their first processes as the host counts (None: it is not up); {} if the kernel does not say."""
    found: dict[str, tuple[int, int]] = {}
    for first in firsts:
        if first is not None:
            for pid in (first, *Processes.below(first)[0]):
                with contextlib.suppress(OSError, ValueError):
                    for task in Path(f"/proc/{pid}/task").iterdir():
                        ran, stood, _ = (task / "schedstat").read_text().split()
                        found[task.name] = (int(ran), int(stood))
    return found
