"""``BatchCaller``: the thread that calls a model for the questions of many agents, several at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hudsim.errors import PolicyFailed
from hudsim.loop import Worker
from hudsim.robot.batch_queue import Ask, BatchQueue, Client
from hudsim.robot.batch_rows import kind_of, stacked
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["BatchCaller"]

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Question:
    """What the queue carries: the bound model to be asked, the batch, and where the answer goes."""

    model: Model
    batch: Any
    answer: Future[Array] = field(default_factory=Future)


class BatchCaller:
    """A :class:`~hudsim.robot.batch_queue.BatchQueue` on the system's clock, and one thread that serves it.

    A call that raises is made again, once, for each question alone: the one whose rows it cannot take fails, and the
    others, whose fault it is not, have their answers. A model has no memory, so that asking twice does no harm.

    Thread-safe. The thread runs while questions wait.
    """

    def __init__(self, queue: BatchQueue) -> None:
        self._queue = queue
        self._worker = Worker("batched-model")
        self._changed = threading.Condition()
        self._in_call: Sequence[Ask] = ()
        self._serving = self._closed = False

    def ask(self, client: Client, model: Model, batch: Any) -> Future[Array]:
        """A future of ``model``'s chunks [N, T, *action shape] for the N rows of ``batch``. One that is cancelled
        is taken out of the queue.

        Raises :class:`~hudsim.errors.UsageError` for a batch whose rows cannot share a call, and
        :class:`~hudsim.errors.PolicyFailed` after :meth:`close`.
        """
        rows, kind = kind_of(batch)
        question = _Question(model, batch)
        with self._changed:
            if self._closed:
                raise _closed()
            ask = Ask(client, (id(model), kind), rows, time.monotonic_ns(), question)
            self._queue.add(ask)
            if self._serving:
                self._changed.notify()
            else:
                self._serving = True
                self._worker.submit(self._serve)
        question.answer.add_done_callback(lambda answer: self._withdraw(ask) if answer.cancelled() else None)
        return question.answer

    def close(self) -> None:
        """End all that wait, also for the call under way, with :class:`~hudsim.errors.PolicyFailed`. Idempotent."""
        with self._changed:
            self._closed = True
            left = [*self._queue.clear(), *self._in_call]
            self._changed.notify()
        for ask in left:
            with suppress(InvalidStateError):
                ask.payload.answer.set_exception(_closed())
        self._worker.stop()

    def _withdraw(self, ask: Ask) -> None:
        with self._changed:
            self._queue.remove(ask)
            self._changed.notify()  # it may have been all that the others waited for

    def _serve(self) -> None:
        while asks := self._next():
            self._answer(asks)

    def _next(self) -> Sequence[Ask]:
        """The questions of the next call, when it is due; empty once nobody waits."""
        with self._changed:
            while (due_ns := self._queue.due_ns(now_ns := time.monotonic_ns())) is not None:
                if due_ns > now_ns:
                    self._changed.wait((due_ns - now_ns) / 1e9)
                    continue
                asks = self._queue.take(now_ns)
                self._in_call = [ask for ask in asks if ask.payload.answer.set_running_or_notify_cancel()]
                if self._in_call:
                    return self._in_call
            self._serving = False
            return ()

    def _answer(self, asks: Sequence[Ask]) -> None:
        answers = self._called(asks)
        now_ns = time.monotonic_ns()
        with self._changed:
            self._in_call = ()
            for ask, answer in zip(asks, answers, strict=True):
                if not isinstance(answer, BaseException):
                    self._queue.answered(ask, answer.shape[1], now_ns)
            self._queue.freed(now_ns)
        for ask, answer in zip(asks, answers, strict=True):
            with suppress(InvalidStateError):  # it has been closed meanwhile
                if isinstance(answer, BaseException):
                    ask.payload.answer.set_exception(answer)
                else:
                    ask.payload.answer.set_result(answer)

    def _called(self, asks: Sequence[Ask]) -> list[Array | BaseException]:
        """The chunks of each question, or what the model raised for it."""
        rows = sum(ask.rows for ask in asks)
        began_ns = time.monotonic_ns()
        try:
            batch = stacked([ask.payload.batch for ask in asks])
            chunks = asks[0].payload.model.infer(batch)
            if isinstance(chunks, np.ndarray):
                chunks = np.array(chunks)  # its own: the model may return the same again, and each keeps but its rows
        except BaseException as error:  # noqa: BLE001 - whoever asked gets it, whatever it is
            if len(asks) == 1:
                return [_awaitable(error)]
            log.warning("a call of %d rows raised %s; each agent's are tried alone", rows, type(error).__name__)
            return [answer for ask in asks for answer in self._called([ask])]
        if not isinstance(chunks, np.ndarray) or chunks.ndim < 2 or len(chunks) != rows:
            return [_misshapen(chunks, rows) for _ in asks]
        with self._changed:
            self._queue.called(rows, time.monotonic_ns() - began_ns)
        ends = np.cumsum([ask.rows for ask in asks])
        return [chunks[end - ask.rows : end] for ask, end in zip(asks, ends, strict=True)]


def _awaitable(error: BaseException) -> BaseException:
    return RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error


def _misshapen(chunks: Any, rows: int) -> PolicyFailed:
    """Not one row's fault: it is not tried again."""
    got = f"{chunks.dtype}{list(chunks.shape)}" if isinstance(chunks, np.ndarray) else f"a {type(chunks).__name__}"
    return PolicyFailed(f"infer: got {got} for a batch of {rows} rows, expected an array [{rows}, T, …]")


def _closed() -> PolicyFailed:
    return PolicyFailed("the batched model has been closed")
