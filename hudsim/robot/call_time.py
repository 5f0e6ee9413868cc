"""``CallTime``: what a call of a model takes, by the rows in it, learned from the calls there were."""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median

__all__ = ["CallTime"]

_MEMORY = 32  # calls


class CallTime:
    """The line ``fixed + n · each`` [ns] for a call of ``n`` rows, through the last 32 calls.

    Weighted least squares through the median of each number of rows, so that one call that compiles or is held up
    does not count. While all calls had the same number of rows, nothing tells the two parts apart: all is fixed. 0
    before there was a call.
    """

    def __init__(self) -> None:
        self._calls: deque[tuple[int, int]] = deque(maxlen=_MEMORY)
        self.fixed_ns = 0.0
        self.each_ns = 0.0

    def learn(self, rows: int, took_ns: int) -> None:
        """A call of so many rows took so long."""
        self._calls.append((rows, took_ns))
        times: defaultdict[int, list[int]] = defaultdict(list)
        for n, t in self._calls:
            times[n].append(t)
        points = [(n, median(taken), len(taken)) for n, taken in times.items()]
        mean_n = sum(n * w for n, _, w in points) / len(self._calls)
        mean_t = sum(t * w for _, t, w in points) / len(self._calls)
        spread = sum(w * (n - mean_n) ** 2 for n, _, w in points)
        slope = sum(w * (n - mean_n) * (t - mean_t) for n, t, w in points) / spread if spread else 0.0
        self.each_ns = min(max(slope, 0.0), mean_t / mean_n)  # neither part is below 0
        self.fixed_ns = mean_t - mean_n * self.each_ns

    def of(self, rows: int) -> float:
        """What a call of so many rows is expected to take [ns]."""
        return self.fixed_ns + rows * self.each_ns
