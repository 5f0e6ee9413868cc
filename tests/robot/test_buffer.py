"""Which action is executed at which tick, whenever chunks arrive."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import WireError
from hudsim.robot.bridge import Array
from hudsim.robot.buffer import ActionBuffer, Pending


def ramp(index: int, length: int) -> Array:
    """The chunk of the policy a[t] = t inferred from observation ``index``: its row k is for tick index + 1 + k."""
    return np.arange(index + 1, index + 1 + length, dtype=np.float64).reshape(-1, 1)


def pending(chunk: Array, index: int | None) -> Pending:
    return Pending(chunk, None, index, 0)


def run(buffer: ActionBuffer, ticks: range) -> list[float | None]:
    """What is executed at each tick; None: starved."""
    due = [buffer.pop(tick) for tick in ticks]
    return [None if one is None else float(one.action[0]) for one in due]


@given(
    length=st.integers(1, 12),
    horizon=st.integers(1, 12),
    delays=st.lists(st.integers(0, 10), min_size=1, max_size=8),
)
def test_a_ramp_is_executed_without_jumps_whatever_the_delay(length: int, horizon: int, delays: list[int]) -> None:
    buffer, executed = ActionBuffer(), list[float | None]()
    arrivals: dict[int, int] = {}  # tick of arrival -> tick of the observation
    waiting = itertools.cycle(delays)
    next_inference = 0
    for tick in range(60):
        if tick >= next_inference and not any(t > tick for t in arrivals):
            arrivals[tick + (next(waiting) if tick else 0)] = tick
            next_inference = tick + horizon
        if (index := arrivals.get(tick)) is not None:
            buffer.push(pending(ramp(index, length), index), tick)
        due = buffer.pop(tick + 1)
        executed.append(None if due is None else float(due.action[0]))
    assert executed[0] == 1.0, "the first chunk counts from its first row"
    for tick, action in enumerate(executed, start=1):
        assert action is None or action == tick, "what is executed at a tick was meant for it"
    done = [action for action in executed if action is not None]
    assert done == sorted(done)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_chunk_of_k_executes_k_steps(length: int) -> None:
    buffer = ActionBuffer()
    assert buffer.push(pending(ramp(0, length), 0), 0).dropped == 0
    assert run(buffer, range(1, length + 3)) == [float(k + 1) for k in range(length)] + [None, None]


@pytest.mark.parametrize("length", [2, 5])
@pytest.mark.parametrize("horizon", ["1", "K - 1", "K"])
def test_replanning_at_any_horizon_executes_every_tick_once(length: int, horizon: str) -> None:
    every = {"1": 1, "K - 1": length - 1, "K": length}[horizon]
    buffer, executed = ActionBuffer(), []
    for tick in range(40):
        if tick % every == 0:
            buffer.push(pending(ramp(tick, length), tick), tick)
        executed += run(buffer, range(tick + 1, tick + 2))
    assert executed == [float(tick) for tick in range(1, 41)]


def test_rows_whose_ticks_have_passed_are_dropped_and_counted() -> None:
    buffer = ActionBuffer()
    buffer.push(pending(ramp(0, 10), 0), 0)
    run(buffer, range(1, 5))
    pushed = buffer.push(pending(ramp(1, 10), 1), 4)
    assert (pushed.dropped, pushed.stale) == (3, False)
    assert buffer.delay == 3
    assert run(buffer, range(5, 8)) == [5.0, 6.0, 7.0]


def test_a_chunk_that_is_past_altogether_changes_nothing() -> None:
    buffer = ActionBuffer()
    buffer.push(pending(ramp(8, 10), 8), 8)
    assert buffer.push(pending(ramp(0, 8), 0), 8).stale
    assert buffer.push(pending(ramp(5, 20), 5), 8).stale, "an older observation's chunk never replaces a newer one's"
    assert run(buffer, range(9, 11)) == [9.0, 10.0]


def test_a_chunk_for_an_observation_that_is_not_made_yet_is_refused() -> None:
    with pytest.raises(WireError, match="obs_index: got 3, but the newest observation is 2"):
        ActionBuffer().push(pending(ramp(3, 4), 3), 2)


def test_without_an_index_a_chunk_counts_from_the_newest_observation() -> None:
    buffer = ActionBuffer()
    buffer.push(pending(ramp(6, 2), None), 6)
    assert run(buffer, range(7, 10)) == [7.0, 8.0, None]


def test_what_is_left_is_said() -> None:
    buffer = ActionBuffer()
    assert buffer.unexecuted(0) is None
    buffer.push(pending(ramp(0, 4), 0), 0)
    run(buffer, range(1, 3))
    rest = buffer.unexecuted(2)
    assert rest is not None
    assert rest.tolist() == [[3.0], [4.0]]
    assert buffer.unexecuted(4) is None


def test_the_arrival_is_told_once_a_chunk() -> None:
    buffer = ActionBuffer()
    buffer.push(Pending(ramp(0, 2), None, 0, 123), 0)
    first, second = buffer.pop(1), buffer.pop(2)
    assert first is not None
    assert second is not None
    assert (first.received_ns, second.received_ns) == (123, None)
