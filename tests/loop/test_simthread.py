from __future__ import annotations

import logging
import os
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue

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


# Descriptors that it watches --------------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_what_it_watches_is_served_between_jobs_until_it_no_longer_does(sim: SimThread, pipe: tuple[int, int]) -> None:
    seen: SimpleQueue[bytes] = SimpleQueue()
    sim.watch(pipe[0], lambda: seen.put(os.read(pipe[0], 100)))
    for number in range(50):
        os.write(pipe[1], b"%d" % number)
        assert seen.get(timeout=5) == b"%d" % number
        assert sim.submit(lambda: 7).result(5) == 7
    sim.unwatch(pipe[0])
    sim.unwatch(pipe[0])
    os.write(pipe[1], b"more")
    assert sim.submit(lambda: 7).result(5) == 7
    with pytest.raises(Empty):
        seen.get(timeout=0.05)


def test_a_job_comes_before_what_it_watches(sim: SimThread, pipe: tuple[int, int]) -> None:
    seen: list[str] = []
    hold, done = threading.Event(), threading.Event()

    def read() -> None:
        os.read(pipe[0], 1)
        seen.append("pipe")
        done.set()

    sim.watch(pipe[0], read)
    holding = sim.submit(hold.wait, 5)
    os.write(pipe[1], b"x")
    for _ in range(3):
        sim.post(lambda: seen.append("job"))
    hold.set()
    assert done.wait(5)
    assert holding.result(5)
    assert seen == ["job"] * 3 + ["pipe"]


def test_jobs_from_many_threads_are_not_lost_while_it_waits_for_a_descriptor(
    sim: SimThread, pipe: tuple[int, int]
) -> None:
    sim.watch(pipe[0], lambda: None)

    def ask() -> None:
        for number in range(2000):
            assert sim.submit(lambda number=number: number).result(5) == number

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    sim.unwatch(pipe[0])


def test_watching_descriptors_makes_no_tick_late(sim: SimThread, pipe: tuple[int, int]) -> None:
    """Beside the same ticker that nothing is watched beside, by turns, on a machine that does other things too."""
    late: dict[bool, list[int]] = {False: [], True: []}

    def turn(*, watched: bool) -> None:
        done = threading.Event()
        if watched:
            sim.watch(pipe[0], lambda: None)

        def on_tick(tick: Tick) -> None:
            late[watched].append(tick.late_ns)
            if tick.index == 14:
                sim.set_ticker(None)
                done.set()

        sim.submit(sim.set_ticker, Ticker(100.0), on_tick).result(5)
        assert done.wait(10)
        if watched:
            sim.unwatch(pipe[0])

    for _ in range(4):
        turn(watched=False)
        turn(watched=True)
    assert statistics.median(late[True]) < statistics.median(late[False]) + 100_000


def test_a_ticker_ticks_while_descriptors_are_watched(sim: SimThread, pipe: tuple[int, int]) -> None:
    ticks, bytes_read = threading.Semaphore(0), threading.Semaphore(0)

    def read() -> None:
        os.read(pipe[0], 1)
        bytes_read.release()

    sim.watch(pipe[0], read)
    ticker = Ticker(200.0)
    sim.submit(sim.set_ticker, ticker, lambda tick: ticks.release()).result(5)
    for _ in range(5):
        os.write(pipe[1], b"x")
        assert ticks.acquire(timeout=5)
        assert bytes_read.acquire(timeout=5)
    sim.submit(sim.set_ticker, None).result(5)
