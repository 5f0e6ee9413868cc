"""``Ticker``: absolute deadlines at a fixed rate; late ones are given up and counted, never bunched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudsim.loop.clock import Clock, MonotonicClock

__all__ = ["Tick", "Ticker"]


@dataclass(frozen=True, slots=True)
class Tick:
    """One deadline that was kept: its ``index`` on the grid (0, 1, …) and how late it was noticed, in ns."""

    index: int
    late_ns: int


class Ticker:
    """Deadline k stands at ``origin + k / rate_hz``, whatever happened to the ones before it.

    ::

        for tick in Ticker(50.0):
            step()          # 90 ms once: the deadlines at 20, 40, 60 and 80 ms are missed, the next is at 100

    missed
        How many deadlines were given up so far.
    """

    def __init__(self, rate_hz: float, clock: Clock | None = None) -> None:
        if not 0 < rate_hz <= 1e6:
            raise ValueError(f"rate_hz: got {rate_hz!r}, expected above 0 and at most 1e6")
        self.rate_hz = float(rate_hz)
        self.clock: Clock = clock or MonotonicClock()
        self.missed = 0
        self._origin_ns = 0
        self._index = 0
        self.start()

    def start(self) -> None:
        """Put the grid's origin at now: tick 0 is due at once."""
        self._origin_ns = self.clock.now_ns()
        self._index = 0

    @property
    def deadline_ns(self) -> int:
        """When the next tick is due. Computed from the index each time, so rounding never adds up."""
        return self._origin_ns + round(self._index * 1e9 / self.rate_hz)

    def skip(self, *, patience: float = 0.0) -> int:
        """Give up the deadlines that passed while something else ran; returns how many. Call it after work.

        One that is late by at most ``patience`` (a share of a period) is kept, and done late.
        """
        late_ns = self.clock.now_ns() - self.deadline_ns - patience * 1e9 / self.rate_hz
        if late_ns <= 0:
            return 0
        missed = int(late_ns * self.rate_hz / 1e9) + 1
        self._index += missed
        self.missed += missed
        return missed

    def wait(self) -> Tick:
        """Wait for the next deadline and take it."""
        deadline_ns = self.deadline_ns
        self.clock.sleep_until(deadline_ns)
        tick = Tick(self._index, max(0, self.clock.now_ns() - deadline_ns))
        self._index += 1
        return tick

    def __iter__(self) -> Iterator[Tick]:
        while True:
            yield self.wait()
            self.skip()
