"""``SimThread``: the one thread that touches a simulator. Everyone else queues jobs to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from hudsim.loop.clock import Clock, MonotonicClock
from hudsim.loop.pulse import Pulse
from hudsim.loop.ticker import Tick, Ticker

__all__ = ["SimThread"]

log = logging.getLogger(__name__)
R = TypeVar("R")
Job = Callable[[], None]

_PATIENCE = 0.5  # a job that ends just after a deadline does not cost the tick, nor bring it too near the next
_WAKE_EARLY_NS = 400_000  # leave the queue this long before a deadline; the clock sleeps and spins the rest


class SimThread:
    """Runs queued jobs one at a time and, while a ticker is set, a tick function at each of its deadlines.

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
        self._jobs.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for a thread made by :meth:`start`; False if it is still busy (hung in native code)."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def post(self, job: Job) -> None:
        """Queue a job whose outcome nobody waits for. Thread-safe."""
        self._jobs.put(job)

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

        if threading.get_ident() == self._ident:
            job()
        else:
            self._jobs.put(job)
        return future

    def set_ticker(self, ticker: Ticker | None, on_tick: Callable[[Tick], None] | None = None) -> None:
        """Call ``on_tick`` at each deadline of ``ticker``; None stops it. Only on the sim thread."""
        self._ticker, self._on_tick = ticker, on_tick

    def _next_job(self) -> Job | None:
        """The next job; a due tick is one too. None: stop."""
        while (ticker := self._ticker) is not None:
            rest_ns = ticker.deadline_ns - self.clock.now_ns() - _WAKE_EARLY_NS
            try:
                return self._jobs.get(timeout=rest_ns * 1e-9) if rest_ns > 0 else self._jobs.get_nowait()
            except Empty:
                tick = ticker.wait()
                on_tick = self._on_tick
                assert on_tick is not None
                return lambda: on_tick(tick)
        return self._jobs.get()
