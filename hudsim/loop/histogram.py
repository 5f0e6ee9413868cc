"""``Histogram``: durations by the million in flat memory, merged without loss, with exact extremes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["Histogram"]

_SUB = 128  # buckets an octave: quantiles are off by less than 1/128


class Histogram:
    """Counts of non-negative integers (nanoseconds) in log-linear buckets.

    A bucket is 1/128 of its octave wide, so a quantile is within 0.8 % of the sample it stands for; ``max``
    is exact. (The layout is HdrHistogram's.) Samples are put aside as they come, and sorted into buckets by
    :meth:`settle` or when something is asked: recording costs the tick a list's append.
    """

    __slots__ = ("_counts", "_fresh", "_max", "record")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._max = 0
        self._fresh: list[int] = []
        self.record: Callable[[int], None] = self._fresh.append
        """Count one sample; a negative one counts as 0."""

    def settle(self) -> None:
        """Sort what has come into its buckets. Who records for hours calls it now and then, and memory stays flat."""
        if not self._fresh:
            return
        values = np.maximum(np.array(self._fresh, dtype=np.int64), 0)
        self._fresh.clear()
        self._max = max(self._max, int(values.max()))
        shifts = np.maximum(np.frexp(values.astype(np.float64))[1] - 8, 0)  # frexp's exponent is the bit length
        buckets, counts = np.unique((shifts << 7) + (values >> shifts), return_counts=True)
        for bucket, count in zip(buckets.tolist(), counts.tolist(), strict=True):
            self._counts[bucket] = self._counts.get(bucket, 0) + count

    @property
    def count(self) -> int:
        """How many samples there are."""
        return sum(self._counts.values()) + len(self._fresh)

    @property
    def max(self) -> int:
        """The largest sample, exactly; 0 without one."""
        self.settle()
        return self._max

    def merge(self, other: Histogram) -> None:
        """Add all of ``other``'s samples."""
        self.settle()
        self._max = max(self._max, other.max)
        for bucket, count in other._counts.items():
            self._counts[bucket] = self._counts.get(bucket, 0) + count

    def quantile(self, q: float) -> float:
        """The value below which a share ``q`` (0…1) of the samples lies; nan without samples."""
        self.settle()
        if not self._counts:
            return float("nan")
        rank = q * (self.count - 1)
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen > rank:
                return min(_middle(bucket), float(self._max))
        return float(self._max)

    def summary_us(self) -> dict[str, float] | None:
        """``{"p50", "p99", "max"}`` in microseconds; None without samples."""
        if not self.count:
            return None
        values = {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": float(self.max)}
        return {name: round(value / 1e3, 1) for name, value in values.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that :meth:`from_json` reads back."""
        self.settle()
        return {"max": self._max, "counts": {str(b): n for b, n in sorted(self._counts.items())}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Histogram:
        histogram = cls()
        histogram._counts = {int(b): int(n) for b, n in document["counts"].items()}
        histogram._max = int(document["max"])
        return histogram


def _middle(bucket: int) -> float:
    if bucket < 2 * _SUB:
        return float(bucket)
    shift = (bucket >> 7) - 1
    return ((bucket - (shift << 7)) + 0.5) * (1 << shift)
