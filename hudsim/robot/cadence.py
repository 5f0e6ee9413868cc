"""``Cadence``: how well the rate was kept and where each tick's time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.loop import Histogram

__all__ = ["STAGES", "Cadence"]

STAGES = ("step", "render", "encode", "compress", "wire", "decompress", "adapt", "infer", "apply")
"""The way of one tick, in order.

``step`` the simulator advances; ``render`` it makes the observation (cameras included); ``encode`` check and
serialise; ``compress`` and ``decompress`` the cameras whose contract says an ``encoding``, on threads of their own;
``wire`` from ready-to-send to received (one host only); ``adapt`` and ``infer`` in the agent, each time it infers;
``apply`` from the action's arrival at the world to the start of the step that uses it.
"""

_SETTLE = 1024  # ticks between two sortings of what was recorded
_COUNTS = ("ticks", "missed", "starved", "stale", "skipped")


class Cadence:
    """The account of one episode, or of many merged. Durations in nanoseconds until they are printed.

    rate_asked_hz
        The control rate; None in lockstep, where nothing asks for a rate.
    ticks, missed
        Control ticks done; deadlines given up because something before them took too long.
    starved, stale
        Realtime: ticks for which no action had come; chunks that came when all their ticks had passed.
    skipped
        Observations that the world did not send, or the agent did not look at, because a newer one was there.
    frame_bytes
        Sizes of the observations' frames, of what crosses the link: arrays in shared memory do not.
    """

    def __init__(self, rate_asked_hz: float | None = None) -> None:
        self.rate_asked_hz = rate_asked_hz
        self.ticks = self.missed = self.starved = self.stale = self.skipped = 0
        self.late = Histogram()
        self.age_ticks = Histogram()
        self.frame_bytes = Histogram()
        self.stages = {name: Histogram() for name in STAGES}
        self._span_ns = 0
        self._intervals = 0
        self._last_ns: int | None = None

    def tick(self, now_ns: int) -> None:
        """A control tick started at ``now_ns``."""
        self.ticks += 1
        if self._last_ns is not None:
            self._span_ns += now_ns - self._last_ns
            self._intervals += 1
        self._last_ns = now_ns
        if self.ticks % _SETTLE == 0:
            for histogram in (self.late, self.age_ticks, self.frame_bytes, *self.stages.values()):
                histogram.settle()

    @property
    def rate_achieved_hz(self) -> float | None:
        """Ticks a second between the first and the last tick of each episode; None before two ticks."""
        return self._intervals * 1e9 / self._span_ns if self._span_ns else None

    def merge(self, other: Cadence) -> None:
        """Add another's samples and counts (of another episode, or of the other end of the same one)."""
        self.rate_asked_hz = self.rate_asked_hz or other.rate_asked_hz
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.late.merge(other.late)
        self.age_ticks.merge(other.age_ticks)
        self.frame_bytes.merge(other.frame_bytes)
        for name, histogram in other.stages.items():
            self.stages[name].merge(histogram)
        self._span_ns += other._span_ns
        self._intervals += other._intervals

    def summary(self) -> dict[str, Any]:
        """What is printed: rates in Hz, durations in µs ``{"p50", "p99", "max"}``, null where nothing was measured."""
        achieved = self.rate_achieved_hz
        return {
            "rate_asked_hz": self.rate_asked_hz,
            "rate_achieved_hz": None if achieved is None else round(achieved, 3),
            **{name: getattr(self, name) for name in _COUNTS},
            "late_us": self.late.summary_us(),
            "action_age_ticks": _whole(self.age_ticks),
            "frame_bytes": _whole(self.frame_bytes),
            "stages_us": {name: histogram.summary_us() for name, histogram in self.stages.items()},
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON that :meth:`from_json` reads back."""
        return {
            "rate_asked_hz": self.rate_asked_hz,
            **{name: getattr(self, name) for name in _COUNTS},
            "span_ns": self._span_ns,
            "intervals": self._intervals,
            "late": self.late.to_json(),
            "age_ticks": self.age_ticks.to_json(),
            "frame_bytes": self.frame_bytes.to_json(),
            "stages": {name: h.to_json() for name, h in self.stages.items() if h.count},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Cadence:
        cadence = cls(document["rate_asked_hz"])
        for name in _COUNTS:
            setattr(cadence, name, int(document[name]))
        cadence._span_ns, cadence._intervals = int(document["span_ns"]), int(document["intervals"])
        cadence.late = Histogram.from_json(document["late"])
        cadence.age_ticks = Histogram.from_json(document["age_ticks"])
        if "frame_bytes" in document:  # records of before it was counted have none
            cadence.frame_bytes = Histogram.from_json(document["frame_bytes"])
        for name, histogram in document["stages"].items():
            cadence.stages[name] = Histogram.from_json(histogram)
        return cadence


def _whole(histogram: Histogram) -> dict[str, int] | None:
    return {"p50": round(histogram.quantile(0.5)), "max": histogram.max} if histogram.count else None
