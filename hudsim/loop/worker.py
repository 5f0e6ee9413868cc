"""``Worker``: a daemon thread that runs what is handed to it, in order."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Worker"]

R = TypeVar("R")

_LAST_JOB_S = 0.5


class Worker:
    """One thread for one kind of work: a model's inference, hashing, starting children.

    The thread starts with the first job and lasts as long as the process; it does not keep the process alive,
    so that work which never returns cannot hang an exit. (A ``ThreadPoolExecutor``'s threads do.)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()
        self._idle.set()
        _workers.add(self)

    def submit(self, fn: Callable[..., R], *args: Any) -> Future[R]:
        """Queue ``fn(*args)``; a future of what it returns or raises. Thread-safe."""
        future: Future[R] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args))
            except StopIteration as error:  # a coroutine that awaits it cannot be given one
                future.set_exception(RuntimeError(f"StopIteration: {error}"))
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it, whatever it is
                future.set_exception(error)

        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=f"hudsim-{self._name}", daemon=True)
                self._thread.start()
            self._jobs.put(job)
        return future

    def stop(self) -> None:
        """Let the thread end after the jobs queued so far. The next job starts a new one. Idempotent."""
        with self._lock:
            if self._thread is not None:
                self._jobs.put(None)
                self._thread = None

    def wait_idle(self, timeout_s: float) -> None:
        """Until the job under way is done, for so long at most."""
        self._idle.wait(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._idle.clear()
            try:
                job()
            finally:
                self._idle.set()


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _let_finish() -> None:
    """An interpreter that ends while a thread of it is in native code may crash; a job that hangs is not waited for."""
    for worker in list(_workers):
        worker.wait_idle(_LAST_JOB_S)
