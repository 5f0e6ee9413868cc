"""When a batch goes: the rule, on a clock that is told."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hudsim.robot.batch_queue import Ask, BatchQueue, Client
from hudsim.robot.call_time import CallTime

MS = 1_000_000


class Played:
    """A queue, a model that takes ``fixed + each · rows`` ms, and what was called: (ms, the clients' names)."""

    def __init__(self, *, max_batch: int = 16, max_wait_ms: int | None = None) -> None:
        self.queue = BatchQueue(max_batch, None if max_wait_ms is None else max_wait_ms * MS)
        self.clients: dict[str, Client] = {}
        self.now_ms = 0.0

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client())

    def ask(self, names: str, at_ms: float, *, kind: str = "", rows: int = 1) -> list[Ask]:
        asks = [Ask(self.client(name), kind, rows, round(at_ms * MS), name) for name in names]
        for ask in asks:
            self.queue.add(ask)
        self.now_ms = max(self.now_ms, at_ms)
        return asks

    @property
    def due_ms(self) -> float | None:
        due_ns = self.queue.due_ns(round(self.now_ms * MS))
        return None if due_ns is None else due_ns / MS

    def call(self, at_ms: float, took_ms: float, *, ticks: int = 8) -> str:
        """Who is in the call that is made now and takes so long."""
        asks = self.queue.take(round(at_ms * MS))
        if not asks:
            return ""
        self.queue.called(sum(ask.rows for ask in asks), round(took_ms * MS))
        for ask in asks:
            self.queue.answered(ask, ticks, round((at_ms + took_ms) * MS))
        self.queue.freed(round((at_ms + took_ms) * MS))
        self.now_ms = at_ms + took_ms
        return "".join(ask.payload for ask in asks)


def habits(names: str = "ab", *, gap_ms: float = 10, took_ms: float = 20, **options: Any) -> Played:
    """Clients that ask ``gap_ms`` after an answer, a model that took ``took_ms``; all answered at 0."""
    played = Played(**options)
    for at_ms in (-2 * (gap_ms + took_ms), -(gap_ms + took_ms), 0.0):
        played.ask(names, at_ms - took_ms)
        played.call(at_ms - took_ms, took_ms)
    played.now_ms = 0.0
    return played


def test_a_first_question_is_not_kept_waiting() -> None:
    played = Played()
    played.ask("a", 5)
    assert played.due_ms == 5
    assert played.call(5, 20) == "a"
    assert played.due_ms is None


def test_questions_gather_while_a_call_runs() -> None:
    played = Played()
    played.ask("a", 0)
    asks = played.queue.take(0)
    played.ask("bcd", 7)
    played.queue.answered(asks[0], 8, 20 * MS)
    played.queue.freed(20 * MS)
    assert played.call(20, 23) == "bcd"


def test_it_waits_for_whom_it_expects_and_goes_at_once_when_all_are_there() -> None:
    played = habits("abc")
    played.ask("a", 9)
    assert played.due_ms == 10.625, "the others' gap is 10, and a little"
    assert played.queue.take(10 * MS) == []
    played.ask("b", 10)
    assert played.due_ms == 10.625
    played.ask("c", 10.5)
    assert played.due_ms == 9, "nobody else can come"
    assert played.call(10.5, 20) == "abc"


def test_a_full_batch_waits_for_nobody() -> None:
    played = habits("abc", max_batch=3)
    played.ask("a", 9)
    assert played.due_ms == 10.625
    played.ask("b", 9, rows=2)
    assert played.due_ms == 9
    assert played.call(9, 20) == "ab"


def test_who_does_not_come_is_not_waited_for_any_more() -> None:
    played = habits("ab")
    played.ask("a", 10)
    assert played.due_ms == 10.625
    assert played.call(10.625, 20) == "a"
    for at_ms in (41, 71):
        played.ask("a", at_ms)
        assert played.due_ms == at_ms, "b has died: a is alone"
        assert played.call(at_ms, 20) == "a"


@pytest.mark.parametrize(("names", "too_early_ms", "waits_ms"), [("ab", 21, 22), ("abc", 18, 19)])
def test_it_waits_if_all_chunks_together_come_earlier_for_it(names: str, too_early_ms: int, waits_ms: int) -> None:
    """The others come until 31.875. One is spared 20 ms, and two wait; or two are spared, and three wait."""
    played = habits(names, gap_ms=30, took_ms=20)
    played.ask("a", too_early_ms)
    assert played.due_ms == too_early_ms
    played = habits(names, gap_ms=30, took_ms=20)
    played.ask("a", waits_ms)
    assert played.due_ms == 31.875


def test_a_model_whose_time_is_all_by_the_row_is_never_waited_for() -> None:
    played = habits("ab")
    for rows in (1, 2, 4) * 11:
        played.queue.called(rows, rows * 5 * MS)
    played.ask("a", 9)
    assert played.due_ms == 9


def test_the_longest_wait_can_be_said() -> None:
    for max_wait_ms, due_ms in ((None, 10.625), (7, 10.625), (5, 5), (0, 5)):
        played = habits("ab", max_wait_ms=max_wait_ms)
        played.ask("a", 5)
        assert played.due_ms == due_ms


def test_what_waited_during_a_call_still_waits_for_those_who_were_in_it() -> None:
    played = habits("ab", gap_ms=5)
    played.ask("a", 5)
    assert played.due_ms == 5.3125
    (ask,) = played.queue.take(6 * MS)
    played.ask("b", 16)
    played.queue.answered(ask, 8, 26 * MS)
    played.queue.freed(26 * MS)
    played.now_ms = 26
    assert played.due_ms == 31.3125, "a comes at 31: one call of two is less than two calls"
    played.ask("a", 31)
    assert played.call(31, 20) == "ba"


def test_one_pause_does_not_count_and_one_whose_gaps_differ_is_given_more_time() -> None:
    steady, varied = Client(), Client()
    for client, gaps_ms in ((steady, (10, 10, 500, 10, 10)), (varied, (10, 14, 8, 12, 10))):
        for at_ms in gaps_ms:
            client.answered(0, 8, 0)
            client.asks("", at_ms * MS)
    assert steady.gap_ns == 10.625 * MS
    assert varied.gap_ns == (12 + 2) * MS
    assert Client().gap_ns is None


def test_a_plan_that_runs_out_is_not_waited_into() -> None:
    for lasts_until_ms, due_ms in ((31, 10.625), (30, 8), (5, 8)):
        played = habits("ab")
        played.client("a").lasts_until_ns = lasts_until_ms * MS
        played.ask("a", 8)
        assert played.due_ms == due_ms, "the answer takes 20 ms"


def test_a_plan_lasts_as_long_as_its_chunk_in_a_worlds_ticks_and_without_an_end_where_the_world_waits() -> None:
    played = Played()
    played.client("a").period_ns = 20 * MS
    played.ask("ab", 100)
    played.call(100, 25, ticks=8)
    assert played.client("a").lasts_until_ns == (100 + 8 * 20) * MS
    assert played.client("b").lasts_until_ns == math.inf


def test_kinds_go_apart_the_oldest_first() -> None:
    played = Played()
    played.ask("a", 1, kind="x")
    played.ask("b", 2, kind="y")
    played.ask("c", 3, kind="x")
    assert [played.call(at_ms, 1) for at_ms in (4, 5)] == ["ac", "b"]


def test_one_that_will_ask_another_kind_is_not_waited_for() -> None:
    played = habits("ab")
    played.ask("b", 10, kind="y")
    assert played.due_ms == 10
    assert played.call(10, 20) == "b"
    played.ask("a", 31)
    assert played.due_ms == 31


def test_a_question_is_not_torn_apart_and_a_large_one_goes_alone() -> None:
    played = Played(max_batch=4)
    played.ask("a", 0, rows=3)
    played.ask("b", 1, rows=9)
    played.ask("c", 2, rows=2)
    played.ask("d", 3, rows=2)
    assert [played.call(at_ms, 1) for at_ms in (4, 5, 6)] == ["a", "b", "cd"]
    assert played.due_ms is None


def test_one_who_takes_its_question_back_holds_nobody_up() -> None:
    played = habits("abc")
    (mine, _) = played.ask("ab", 10)
    played.queue.remove(mine)
    played.queue.remove(mine)
    assert played.call(10.625, 20) == "b"
    assert played.due_ms is None


def test_all_that_wait_are_given_back() -> None:
    played = Played()
    asks = [*played.ask("a", 0, kind="x"), *played.ask("b", 0, kind="y")]
    assert played.queue.clear() == asks
    assert played.due_ms is None


def simulated(gap_ms: float, *, max_wait_ms: int | None, calls: int = 60) -> tuple[list[str], float]:
    """8 agents that start a ms apart, and ask ``gap_ms`` after an answer; a model of 20 ms + 1 ms a row.

    Who was in each call, and how many chunks a second there were.
    """
    played = Played(max_wait_ms=max_wait_ms)
    arrivals = [(float(n), name) for n, name in enumerate("abcdefgh")]
    made: list[str] = []
    while len(made) < calls:
        due_ms = played.due_ms
        if arrivals and (due_ms is None or arrivals[0][0] <= max(due_ms, played.now_ms)):
            at_ms, name = arrivals.pop(0)
            played.ask(name, at_ms)
            continue
        assert due_ms is not None
        played.now_ms = max(played.now_ms, due_ms)
        rows = len(next(iter(played.queue._waiting.values())))
        ended_ms = played.now_ms + 20 + rows
        if names := played.call(played.now_ms, 20 + rows):
            made.append(names)
            arrivals = sorted([*arrivals, *((ended_ms + gap_ms, name) for name in names)])
    return made, 1e3 * sum(map(len, made)) / played.now_ms


def test_agents_that_start_apart_come_to_share_each_call() -> None:
    calls, _ = simulated(8, max_wait_ms=None)
    assert calls[0] == "a", "the first knows of nobody"
    assert {"".join(sorted(call)) for call in calls[10:]} == {"abcdefgh"}, calls


@pytest.mark.parametrize(("gap_ms", "least"), [(1, 1.4), (8, 1.2), (30, 0.97), (150, 0.97)])
def test_to_wait_by_the_rule_is_worth_more_than_never_to_wait_or_as_much(gap_ms: float, least: float) -> None:
    _, waiting = simulated(gap_ms, max_wait_ms=None)
    _, at_once = simulated(gap_ms, max_wait_ms=0)
    assert waiting / at_once > least


def test_a_line_through_the_calls_tells_the_fixed_part_from_the_rows() -> None:
    time = CallTime()
    assert (time.fixed_ns, time.of(3)) == (0, 0)
    time.learn(1, 21 * MS)
    assert (time.fixed_ns, time.of(1)) == (21 * MS, 21 * MS)
    time.learn(8, 28 * MS)
    time.learn(4, 24 * MS)
    assert time.fixed_ns == pytest.approx(20 * MS)
    assert time.of(32) == pytest.approx(52 * MS)


def test_one_call_that_was_held_up_does_not_move_the_line() -> None:
    time = CallTime()
    for rows in (1, 1, 1, 8, 8, 8):
        time.learn(rows, (20 + rows) * MS)
    time.learn(1, 9_000 * MS)
    assert time.fixed_ns == pytest.approx(20 * MS)


def test_a_time_that_falls_with_the_rows_or_begins_below_0_is_no_line() -> None:
    time = CallTime()
    time.learn(1, 30 * MS)
    time.learn(8, 10 * MS)
    assert (time.each_ns, time.fixed_ns) == (0, 20 * MS)
    time = CallTime()
    time.learn(1, 1 * MS)
    time.learn(8, 64 * MS)
    assert time.fixed_ns == pytest.approx(0)
    assert time.each_ns > 0
