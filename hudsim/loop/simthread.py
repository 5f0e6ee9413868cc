"""``SimThread``: the one thread that touches a simulator. Everyone else queues jobs to it."""

from __future__ import annotations

import logging
import math
import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from hudsim.loop.clock import Clock, MonotonicClock
from hudsim.loop.pulse import Pulse
from hudsim.loop.ticker import Tick, Ticker
from hudsim.loop.vigil import Vigil

__all__ = ["SimThread"]

log = logging.getLogger(__name__)
R = TypeVar("R")
Job = Callable[[], None]

_PATIENCE = 0.5  # a job that ends just after a deadline does not cost the tick, nor bring it too near the next
_NAP_S = 100e-6
_WAKE_EARLY_NS = 400_000  # leave the queue this long before a deadline; the clock sleeps and spins the rest


class SimThread:
    """Runs queued jobs one at a time and, while a ticker is set, a tick function at each of its deadlines.

    While it has nothing to do it waits for a job, and for the descriptors that it was told to :meth:`watch`.
    Either :meth:`start` makes a thread of its own, or the calling thread becomes the sim thread in
    :meth:`run` (a simulator that must own the process's main thread). ``pulse`` says since when it is busy.
    """

    def __init__(self, *, clock: Clock | None = None, pulse: Pulse | None = None) -> None:
        self.clock: Clock = clock or MonotonicClock()
        self.pulse = pulse or Pulse()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ident: int | None = None
        self._ticker: Ticker | None = None
        self._on_tick: Callable[[Tick], None] | None = None
        self._watched = _Watched() if hasattr(select, "epoll") else None

    def start(self) -> None:
        """Make a thread of its own for it. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.run, name="hudsim-sim", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Be the sim thread until :meth:`stop`. Jobs queued before the stop still run."""
        self._ident = threading.get_ident()
        while True:
            job = self._next_job()
            if job is None:
                return
            self.pulse.busy_since_ns = self.clock.now_ns()
            try:
                job()
            except Exception:  # a job that can fail carries its own future; this one is our fault
                log.exception("a job on the sim thread failed")
            finally:
                self.pulse.busy_since_ns = 0
            if self._ticker is not None:
                self._ticker.skip(patience=_PATIENCE)

    def stop(self) -> None:
        """Ask it to end after the jobs queued so far. Thread-safe, idempotent; does not wait (:meth:`join` does)."""
        self._put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for a thread made by :meth:`start`; False if it is still busy (hung in native code)."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def post(self, job: Job) -> None:
        """Queue a job whose outcome nobody waits for. Thread-safe."""
        self._put(job)

    def submit(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> Future[R]:
        """Queue ``fn`` and get a future of what it returns or raises. Thread-safe; runs at once on the sim thread."""
        future: Future[R] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it, whatever it is
                future.set_exception(error)

        if self.is_current:
            job()
        else:
            self._put(job)
        return future

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is the sim thread."""
        return threading.get_ident() == self._ident

    @property
    def can_watch(self) -> bool:
        """Whether :meth:`watch` works on this system."""
        return self._watched is not None

    def watch(self, descriptor: int, job: Job) -> None:
        """Run ``job`` whenever ``descriptor`` can be read and no other job waits, until :meth:`unwatch`. Thread-safe.

        Whoever waits for a peer's answer thus hears of it without another thread.
        """
        assert self._watched is not None
        self._watched.add(descriptor, job)
        self._put(_nothing)  # it may be waiting for jobs alone

    def unwatch(self, descriptor: int) -> None:
        """No :meth:`watch` of it any more; the job may still run once. Thread-safe, idempotent."""
        if self._watched is not None:
            self._watched.discard(descriptor)

    def set_ticker(self, ticker: Ticker | None, on_tick: Callable[[Tick], None] | None = None) -> None:
        """Call ``on_tick`` at each deadline of ``ticker``; None stops it. Only on the sim thread."""
        self._ticker, self._on_tick = ticker, on_tick

    def _next_job(self) -> Job | None:
        """The next job; a due tick is one too. None: stop."""
        while (ticker := self._ticker) is not None:
            rest_ns = ticker.deadline_ns - self.clock.now_ns() - _WAKE_EARLY_NS
            try:
                return self._take(max(0.0, rest_ns * 1e-9))
            except Empty:
                tick = ticker.wait()
                on_tick = self._on_tick
                assert on_tick is not None
                return lambda: on_tick(tick)
        return self._take(None)

    def _take(self, timeout_s: float | None) -> Job | None:
        """The next job, a watched descriptor's if there is no other. Raises Empty after ``timeout_s``."""
        watched = self._watched
        if watched is None or not watched.jobs:
            return self._jobs.get_nowait() if timeout_s == 0 else self._jobs.get(timeout=timeout_s)
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                return self._jobs.get_nowait()
            except Empty:
                job = watched.wait(end_s, unless=lambda: not self._jobs.empty())
            if job is not None:
                return job

    def _put(self, job: Job | None) -> None:
        self._jobs.put(job)
        if self._watched is not None:
            self._watched.wake()


class _Watched:
    """Descriptors and their jobs, and a bell that ends the wait for them."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self._waiting = False
        self._epoll: select.epoll | None = None
        self._bell = -1
        self._vigil = Vigil()

    def add(self, descriptor: int, job: Job) -> None:
        if self._epoll is None:
            self._epoll, self._bell = select.epoll(), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._epoll.register(self._bell, select.EPOLLIN)
        self.jobs[descriptor] = job
        self._epoll.register(descriptor, select.EPOLLIN)

    def discard(self, descriptor: int) -> None:
        if self.jobs.pop(descriptor, None) is not None:
            assert self._epoll is not None
            self._epoll.unregister(descriptor)

    def wait(self, end_s: float | None, *, unless: Callable[[], bool]) -> Job | None:
        """The job of a descriptor that can be read; None if the bell was rung or ``unless`` holds already.

        Raises Empty at ``end_s`` of the monotonic clock. Who rings makes ``unless`` true first: no ring is missed.
        """
        assert self._epoll is not None
        self._waiting = True
        try:
            if unless():
                return None
            found = self._look(self._epoll, end_s)
        finally:
            self._waiting = False
        if not found:
            raise Empty
        descriptor = found[0][0]
        if descriptor == self._bell:
            os.eventfd_read(self._bell)
            return None
        return self.jobs.get(descriptor)

    def _look(self, epoll: select.epoll, end_s: float | None) -> list[tuple[int, int]]:
        """What can be read, at the latest at ``end_s``. In lockstep the agent's answer is often there in a moment."""
        found: list[tuple[int, int]] = []
        if self._vigil.pays():
            found = self._vigil.watch(lambda: epoll.poll(0, 1), None if end_s is None else end_s - time.monotonic())
        if found or end_s is None:
            return found or epoll.poll(None, 1)
        # epoll counts in milliseconds and rounds up, which a ticker would be late by.
        whole_ms = math.floor((end_s - time.monotonic()) * 1e3)
        found = epoll.poll((whole_ms - 0.5) * 1e-3, 1) if whole_ms > 0 else []
        while not found and (rest_s := end_s - time.monotonic()) > 0:
            time.sleep(min(_NAP_S, rest_s))
            found = epoll.poll(0, 1)
        return found

    def wake(self) -> None:
        """End a wait."""
        if self._waiting:
            os.eventfd_write(self._bell, 1)

    def __del__(self) -> None:
        if self._epoll is not None:
            self._epoll.close()
            os.close(self._bell)


def _nothing() -> None:
    """A job that only has the sim thread look again."""
