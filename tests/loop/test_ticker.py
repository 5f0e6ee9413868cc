from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.loop import Ticker
from hudsim.testing import FakeClock

MS = 1_000_000


def working(ticker: Ticker, clock: FakeClock, work_s: list[float]) -> Iterator[tuple[int, int]]:
    """(index, start in ns) of each tick of a loop whose ticks take ``work_s``."""
    for tick, seconds in zip(ticker, work_s, strict=False):
        yield tick.index, clock.now_ns()
        clock.advance(seconds)


def test_a_tick_of_90_ms_misses_four_deadlines_and_the_next_is_on_the_grid() -> None:
    clock = FakeClock()
    ticker = Ticker(50.0, clock)
    began = list(working(ticker, clock, [0.005, 0.090, 0.005, 0.005]))
    assert began == [(0, 0), (1, 20 * MS), (6, 120 * MS), (7, 140 * MS)]
    assert ticker.missed == 4


def test_work_that_ends_on_the_deadline_misses_nothing() -> None:
    clock = FakeClock()
    ticker = Ticker(50.0, clock)
    assert list(working(ticker, clock, [0.020, 0.020, 0.020])) == [(0, 0), (1, 20 * MS), (2, 40 * MS)]
    assert ticker.missed == 0


@given(st.lists(st.floats(0, 0.3), min_size=2, max_size=40), st.sampled_from([12.5, 30.0, 50.0, 60.0, 1000.0]))
def test_ticks_never_bunch_and_every_deadline_is_kept_or_counted(work_s: list[float], rate_hz: float) -> None:
    clock = FakeClock()
    ticker = Ticker(rate_hz, clock)
    ticks = list(working(ticker, clock, work_s))
    period_ns = 1e9 / rate_hz
    for (index, at_ns), (following, next_ns) in itertools.pairwise(ticks):
        assert next_ns - at_ns >= period_ns - 1
        assert following > index
        assert next_ns == round(following * period_ns)


def test_an_hour_at_60_hz_ends_where_it_should() -> None:
    clock = FakeClock()
    ticker = Ticker(60.0, clock)
    for _ in range(60 * 3600):
        ticker.wait()
    assert ticker.deadline_ns == 3600 * 1_000_000_000


def test_lateness_is_that_of_the_ticks_start() -> None:
    clock = FakeClock(oversleep_ns=70_000)
    ticker = Ticker(50.0, clock)
    assert [ticker.wait().late_ns for _ in range(3)] == [0, 70_000, 70_000]


def test_patience_keeps_a_deadline_that_is_a_little_late() -> None:
    clock = FakeClock()
    ticker = Ticker(50.0, clock)
    ticker.wait()
    clock.advance(0.029)
    assert ticker.skip(patience=0.5) == 0
    assert ticker.wait().late_ns == 9 * MS
    clock.advance(0.022)  # at 51 ms: the one due at 40 ms is more than half a period late
    assert ticker.skip(patience=0.5) == 1
    assert ticker.deadline_ns == 60 * MS


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, float("nan"), float("inf"), 2e6])
def test_a_rate_that_cannot_be_is_refused(rate_hz: float) -> None:
    with pytest.raises(ValueError, match="rate_hz"):
        Ticker(rate_hz)


def test_50_hz_is_50_hz_on_the_real_clock_with_stalls() -> None:
    ticker, began = Ticker(50.0), []
    for tick in ticker:
        began.append(time.monotonic_ns())
        if tick.index >= 100:
            break
        time.sleep(0.045 if len(began) % 25 == 0 else 0.005)
    # The grid does not drift: what a stall costs is missed ticks, never a lower rate.
    assert abs((began[-1] - tick.late_ns - began[0]) / 1e9 - tick.index / 50.0) < 0.02
    assert ticker.missed >= 6
    assert len(began) + ticker.missed == tick.index + 1
