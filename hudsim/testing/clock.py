"""``FakeClock``: time that passes only when a test says so."""

from __future__ import annotations

__all__ = ["FakeClock"]


class FakeClock:
    """A :class:`~hudsim.loop.Clock` that starts at 0 ns. Sleeping jumps to the deadline at once.

    ``oversleep_ns`` is how much later than asked each sleep ends, as on a busy machine.
    """

    def __init__(self, *, oversleep_ns: int = 0) -> None:
        self.oversleep_ns = oversleep_ns
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def sleep_until(self, deadline_ns: int) -> None:
        if deadline_ns > self._now_ns:
            self._now_ns = deadline_ns + self.oversleep_ns

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass, as work would."""
        if seconds < 0:
            raise ValueError(f"seconds: got {seconds:g}, expected at least 0: a monotonic clock never goes back")
        self._now_ns += round(seconds * 1e9)
