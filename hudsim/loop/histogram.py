"""``Histogram``: durations by the million in flat memory, merged without loss, with exact extremes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Histogram"]

_SUB = 128  # buckets an octave: quantiles are off by less than 1/128


class Histogram:
    """Counts of non-negative integers (nanoseconds) in log-linear buckets.

    A bucket is 1/128 of its octave wide, so a quantile is within 0.8 % of the sample it stands for; ``max``
    is exact. Recording costs a dictionary update; merging adds counts. (The layout is HdrHistogram's.)
    """

    __slots__ = ("_counts", "count", "max")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.max = 0

    def record(self, value: int) -> None:
        """Count one sample; a negative one counts as 0."""
        if value > self.max:
            self.max = value
        elif value < 0:
            value = 0
        shift = value.bit_length() - 8
        bucket = value if shift <= 0 else (shift << 7) + (value >> shift)
        counts = self._counts
        counts[bucket] = counts.get(bucket, 0) + 1
        self.count += 1

    def merge(self, other: Histogram) -> None:
        """Add all of ``other``'s samples."""
        for bucket, count in other._counts.items():
            self._counts[bucket] = self._counts.get(bucket, 0) + count
        self.count += other.count
        self.max = max(self.max, other.max)

    def quantile(self, q: float) -> float:
        """The value below which a share ``q`` (0…1) of the samples lies; nan without samples."""
        if not self.count:
            return float("nan")
        rank = q * (self.count - 1)
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen > rank:
                return min(_middle(bucket), float(self.max))
        return float(self.max)

    def summary_us(self) -> dict[str, float] | None:
        """``{"p50", "p99", "max"}`` in microseconds; None without samples."""
        if not self.count:
            return None
        values = {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": float(self.max)}
        return {name: round(value / 1e3, 1) for name, value in values.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that :meth:`from_json` reads back."""
        return {"max": self.max, "counts": {str(b): n for b, n in sorted(self._counts.items())}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Histogram:
        histogram = cls()
        histogram._counts = {int(b): int(n) for b, n in document["counts"].items()}
        histogram.count = sum(histogram._counts.values())
        histogram.max = int(document["max"])
        return histogram


def _middle(bucket: int) -> float:
    if bucket < 2 * _SUB:
        return float(bucket)
    shift = (bucket >> 7) - 1
    return ((bucket - (shift << 7)) + 0.5) * (1 << shift)
