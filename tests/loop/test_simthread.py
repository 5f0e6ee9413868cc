from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from hudsim.loop import SimThread, Tick, Ticker
from hudsim.testing import FakeClock


@pytest.fixture
def sim() -> Iterator[SimThread]:
    thread = SimThread()
    thread.start()
    yield thread
    thread.stop()
    assert thread.join(5.0)


def test_jobs_run_in_order_on_one_thread(sim: SimThread) -> None:
    seen: list[tuple[int, int]] = []
    for number in range(50):
        sim.post(lambda number=number: seen.append((number, threading.get_ident())))  # type: ignore[misc]
    sim.submit(int).result(5)
    assert [number for number, _ in seen] == list(range(50))
    assert {ident for _, ident in seen} != {threading.get_ident()}
    assert len({ident for _, ident in seen}) == 1


def test_what_a_job_raises_reaches_the_one_who_waits(sim: SimThread) -> None:
    with pytest.raises(ZeroDivisionError):
        sim.submit(lambda: 1 // 0).result(5)
    assert sim.submit(lambda: 7).result(5) == 7


def test_a_posted_job_that_fails_is_logged_and_the_thread_goes_on(
    sim: SimThread, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        sim.post(lambda: 1 // 0)  # type: ignore[arg-type]
        assert sim.submit(lambda: 7).result(5) == 7
    assert "ZeroDivisionError" in caplog.text


def test_a_job_submitted_on_the_sim_thread_runs_at_once(sim: SimThread) -> None:
    def outer() -> int:
        return sim.submit(lambda: 7).result(0)

    assert sim.submit(outer).result(5) == 7


def test_jobs_queued_before_the_stop_still_run() -> None:
    sim, ran = SimThread(), Future[int]()
    sim.post(lambda: ran.set_result(7))
    sim.stop()
    sim.run()
    assert ran.result(0) == 7


def test_the_pulse_beats_while_a_job_runs_and_only_then(sim: SimThread) -> None:
    assert sim.submit(lambda: sim.pulse.busy_since_ns).result(5) > 0
    deadline = time.monotonic() + 5
    while sim.pulse.busy_since_ns and time.monotonic() < deadline:
        time.sleep(0.001)
    assert sim.pulse.busy_since_ns == 0


def test_a_hung_job_is_seen_from_outside_and_does_not_hang_the_join() -> None:
    sim, release = SimThread(), threading.Event()
    sim.start()
    sim.submit(release.wait, 10)
    sim.stop()
    assert not sim.join(0.05)
    release.set()
    assert sim.join(5.0)


def test_ticks_come_between_jobs_and_a_long_job_is_not_made_up_for() -> None:
    clock, ticks = FakeClock(), list[tuple[int, int]]()
    sim, ticker, done = SimThread(clock=clock), Ticker(100.0, clock), Future[None]()

    def on_tick(tick: Tick) -> None:
        ticks.append((tick.index, clock.now_ns() // 1_000_000))
        ticker.skip()
        if len(ticks) == 3:
            sim.post(lambda: clock.advance(0.012))  # ends at 32 ms: the tick due at 30 is done late
        if len(ticks) == 5:
            sim.post(lambda: clock.advance(0.048))  # ends at 88 ms: those due at 50, 60, 70, 80 are given up
        if len(ticks) == 7:
            sim.set_ticker(None)
            done.set_result(None)

    def begin() -> None:
        ticker.start()
        clock.advance(0.001)
        sim.set_ticker(ticker, on_tick)

    sim.start()
    sim.submit(begin).result(5)
    done.result(10)
    sim.stop()
    assert sim.join(5.0)
    assert ticks == [(0, 1), (1, 10), (2, 20), (3, 32), (4, 40), (9, 90), (10, 100)]
    assert ticker.missed == 4
