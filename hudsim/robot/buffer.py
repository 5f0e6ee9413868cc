"""``ActionBuffer``: which action is due at which tick. Counts ticks; knows no clock."""

from __future__ import annotations

from typing import NamedTuple

from hudsim.errors import WireError
from hudsim.robot.bridge import Array

__all__ = ["ActionBuffer", "Due", "Pending", "Pushed"]


class Pending(NamedTuple):
    """Checked actions as they arrived: a chunk [T, *action shape] (T = 1 for a single action).

    clipped
        bool [T, *action shape]: which values were clipped into their limits; None: none.
    obs_index
        The observation that they were inferred from; None: the peer does not say.
    received_ns
        When they arrived, on the monotonic clock.
    """

    chunk: Array
    clipped: Array | None
    obs_index: int | None
    received_ns: int


class Due(NamedTuple):
    """The action [*action shape] of one tick, which of its values were clipped (None: none), the observation it
    was inferred from (None: a holding action), and when it arrived (None: it is not the first of its chunk).
    """

    action: Array
    clipped: Array | None
    obs_index: int | None
    received_ns: int | None


class Pushed(NamedTuple):
    """What became of a chunk: how many of its first actions had passed already, and whether all of them had."""

    dropped: int
    stale: bool


class ActionBuffer:
    """The newest chunk, laid over the ticks that it was made for.

    Tick n executes action n and yields observation n; observation 0 is the one before any tick. So a chunk
    inferred from observation i begins with the action for tick i + 1. When it arrives, ticks up to ``tick``
    have passed: its rows for those are dropped, and the rest replaces the older chunk whole. A chunk that is
    past altogether, or was inferred from an older observation than the one in place, changes nothing.

    delay
        How many ticks passed between the newest chunk's observation and its arrival.
    """

    def __init__(self) -> None:
        self.delay = 0
        self._pending: Pending | None = None
        self._obs_index = -1
        self._fresh = False

    def push(self, pending: Pending, tick: int) -> Pushed:
        """Lay a chunk down while ``tick`` is the last one executed.

        Without an ``obs_index`` it counts as inferred from the newest observation. Raises
        :class:`~hudsim.errors.WireError` for an observation that has not been made yet.
        """
        index = tick if pending.obs_index is None else pending.obs_index
        if index > tick:
            raise WireError(f"obs_index: got {index}, but the newest observation is {tick}")
        length = len(pending.chunk)
        dropped = min(tick - index, length)
        if dropped == length or index < self._obs_index:
            return Pushed(dropped, stale=True)
        self._pending, self._obs_index, self._fresh = pending, index, True
        self.delay = tick - index
        return Pushed(dropped, stale=False)

    def pop(self, tick: int) -> Due | None:
        """What is due at ``tick``; None: starved."""
        pending, row = self._pending, tick - 1 - self._obs_index
        if pending is None or not 0 <= row < len(pending.chunk):
            return None
        received_ns = pending.received_ns if self._fresh else None
        self._fresh = False
        mask = None if pending.clipped is None else pending.clipped[row]
        return Due(pending.chunk[row], mask, self._obs_index, received_ns)

    def unexecuted(self, tick: int) -> Array | None:
        """The actions still to come after ``tick``, [T', *action shape]; None if there are none."""
        if self._pending is None:
            return None
        rest: Array = self._pending.chunk[max(0, tick - self._obs_index) :]
        return rest if len(rest) else None
