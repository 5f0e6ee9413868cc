"""``BatchQueue``: which questions go to the model in one call, and when. It is told the time, and knows no clock."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from hudsim.robot.call_time import CallTime

__all__ = ["Ask", "BatchQueue", "Client"]

_GAPS = 8


class Client:
    """One agent as the queue knows it: how long after an answer it asks again, and until when its plan lasts.

    period_ns
        A tick of its world. None: its world waits for actions, and no plan runs out.
    kind
        Of what it asked last, which it is expected to ask again.
    """

    def __init__(self) -> None:
        self.kind: Hashable = None
        self.period_ns: float | None = None
        self.lasts_until_ns = math.inf
        self._gaps: deque[int] = deque(maxlen=_GAPS)
        self._answered_ns: int | None = None

    def asks(self, kind: Hashable, now_ns: int) -> None:
        """It has a question."""
        self.kind = kind
        if self._answered_ns is not None:
            self._gaps.append(now_ns - self._answered_ns)
            self._answered_ns = None

    def answered(self, asked_ns: int, ticks: int, now_ns: int) -> None:
        """It has a chunk of so many ticks, inferred from what it saw when it asked."""
        self._answered_ns = now_ns
        self.lasts_until_ns = math.inf if self.period_ns is None else asked_ns + ticks * self.period_ns

    @property
    def gap_ns(self) -> float | None:
        """How long after an answer it asks again, at most. None: it never has.

        As far beyond the longest but one of the last 8 times as that is beyond their median, a sixteenth of it
        at least. A single pause does not count.
        """
        if not self._gaps:
            return None
        gaps = sorted(self._gaps)
        usual, long = gaps[(len(gaps) - 1) // 2], gaps[-2:][0]
        return long + max(long - usual, usual / 16)


@dataclass(eq=False, slots=True)
class Ask:
    """A client's question. Those of equal ``kind`` may share a call; ``payload`` is the caller's own."""

    client: Client
    kind: Hashable
    rows: int
    asked_ns: int
    payload: Any = None


class BatchQueue:
    """Questions that wait for one model, which takes one call at a time.

    The rule. While a call runs, questions gather. When the model is free, a batch goes at once if it is full, or if
    nobody is expected whom it pays to wait for. A call of n rows takes a + b n, which is learned. If k more agents will
    ask within t, then waiting lets n + k of them have their chunks t later, and spares k of them the fixed part of
    another call. It pays if

        k a > (n + k) t

    for then all chunks together come earlier, and agents that wait for their chunks get more done. A model whose time
    is all by the row (a = 0) is never waited for.

    In a realtime world an agent has a plan meanwhile: its batch goes early enough for the answer to come before that
    runs out. Who does not ask after its usual gap is not waited for: it may have ended, or died. The oldest question
    of those that may go goes first, with those of its kind in order.

    max_batch
        Rows a call. A question with more has a call of its own.
    max_wait_ns
        The longest that a free model stands still. None: the learned a.
    """

    def __init__(self, max_batch: int, max_wait_ns: int | None = None) -> None:
        self._max_batch, self._max_wait_ns = max_batch, max_wait_ns
        self._waiting: dict[Hashable, list[Ask]] = {}
        self._coming: dict[Hashable, dict[Client, float]] = {}  # until when each is expected
        self._free_ns = -math.inf
        self.call_time = CallTime()

    def add(self, ask: Ask) -> None:
        """A question came."""
        self._coming.get(ask.client.kind, {}).pop(ask.client, None)
        ask.client.asks(ask.kind, ask.asked_ns)
        self._waiting.setdefault(ask.kind, []).append(ask)

    def remove(self, ask: Ask) -> None:
        """Whoever asked does not want to know any more. Nothing if it does not wait."""
        asks = self._waiting.get(ask.kind, [])
        if ask in asks:
            asks.remove(ask)
            if not asks:
                del self._waiting[ask.kind]

    def clear(self) -> list[Ask]:
        """Forget all that wait, and give them back."""
        asks = [ask for asks in self._waiting.values() for ask in asks]
        self._waiting.clear()
        return asks

    def due_ns(self, now_ns: int) -> float | None:
        """When the next call is to be made, as things are now; past: at once. None: nobody waits."""
        return min((self._due_ns(asks, now_ns) for asks in self._waiting.values()), default=None)

    def take(self, now_ns: int) -> list[Ask]:
        """The questions of the call to be made now, of one kind; empty if there is none yet."""
        due = [asks for asks in self._waiting.values() if self._due_ns(asks, now_ns) <= now_ns]
        if not due:
            return []
        asks = min(due, key=lambda asks: asks[0].asked_ns)
        count, rows = 1, asks[0].rows
        while count < len(asks) and rows + asks[count].rows <= self._max_batch:
            rows += asks[count].rows
            count += 1
        taken = asks[:count]
        del asks[:count]
        if not asks:
            del self._waiting[taken[0].kind]
        return taken

    def called(self, rows: int, took_ns: int) -> None:
        """A call of so many rows went well, and took so long."""
        self.call_time.learn(rows, took_ns)

    def answered(self, ask: Ask, ticks: int, now_ns: int) -> None:
        """A question that was taken has its answer, a chunk of so many ticks."""
        ask.client.answered(ask.asked_ns, ticks, now_ns)
        gap_ns = ask.client.gap_ns
        if gap_ns is not None:
            self._coming.setdefault(ask.kind, {})[ask.client] = now_ns + gap_ns

    def freed(self, now_ns: int) -> None:
        """The model is free for the next call."""
        self._free_ns = now_ns
        for kind, coming in list(self._coming.items()):
            for client in [client for client, by_ns in coming.items() if by_ns <= now_ns]:
                del coming[client]
            if not coming:
                del self._coming[kind]

    def _due_ns(self, asks: list[Ask], now_ns: int) -> float:
        """Of questions of one kind: until when to wait for those for whom it pays most, else when the first came."""
        due_ns = max(asks[0].asked_ns, self._free_ns)
        rows = sum(ask.rows for ask in asks)
        time, most = self.call_time, 0.0
        latest_ns = due_ns + (time.fixed_ns if self._max_wait_ns is None else self._max_wait_ns)
        lasts_until_ns = min(ask.client.lasts_until_ns for ask in asks)
        coming = sorted(by_ns for by_ns in self._coming.get(asks[0].kind, {}).values() if by_ns > now_ns)
        for more, by_ns in enumerate(coming[: max(0, self._max_batch - rows)], 1):
            if by_ns > min(latest_ns, lasts_until_ns - time.of(rows + more)):
                break
            pays = more * time.fixed_ns - (rows + more) * (by_ns - now_ns)
            if pays > most:
                due_ns, most = by_ns, pays
        return due_ns
