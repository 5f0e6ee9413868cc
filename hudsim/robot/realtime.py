"""Realtime: the world ticks whatever the agent does; actions come from the newest chunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hudsim.errors import PolicyDeadline, UsageError
from hudsim.loop import SimThread, Tick, Ticker
from hudsim.robot.buffer import ActionBuffer, Due, Pending
from hudsim.robot.cadence import Cadence
from hudsim.robot.engine import Deliver, Engine
from hudsim.robot.lockstep import rate_of
from hudsim.robot.play import Play
from hudsim.robot.world import Row, World

__all__ = ["RealtimeEngine"]


@dataclass(slots=True)
class RealtimePlay(Play):
    """A play with its newest chunk. ``running`` from the first one on; ``starved_run``: starved ticks in a row."""

    buffer: ActionBuffer = field(default_factory=ActionBuffer)
    running: bool = False
    starved_run: int = 0


class RealtimeEngine(Engine[RealtimePlay]):
    """Every running slot steps at every deadline. A slot runs from its first chunk on, so a cold model loses nothing.

    A tick without an action is starved: it holds, by the dimension as the contract says, or ends the episode
    (``on_miss: stop``). ``policy_deadline_s`` runs from the first starved tick in a row.
    """

    def __init__(self, world: World, sim: SimThread, deliver: Deliver) -> None:
        super().__init__(world, sim, deliver)
        if world.barrier:
            raise UsageError("realtime: this world steps its slots together only; serve it in lockstep")
        self._timing = world.contract.timing
        self._ticker = Ticker(rate_of(world), sim.clock)
        self._ticking = False
        self._last_index = -1

    def _new_play(self, token: str, slot: int, seed: int | None, prompt: str, first: Row) -> RealtimePlay:
        return RealtimePlay(token, slot, seed, prompt, first, self.world.contract, Cadence(self._ticker.rate_hz))

    def _accept(self, play: RealtimePlay, pending: Pending) -> None:
        if play.buffer.push(pending, play.tick).stale:
            play.cadence.stale += 1
            return
        play.running = True
        if not self._ticking:
            self._ticking = True
            self._ticker.start()
            self._last_index = -1
            self._sim.set_ticker(self._ticker, self._on_tick)

    def _more_meta(self, play: RealtimePlay, meta: dict[str, Any]) -> None:
        rest = play.buffer.unexecuted(play.tick)
        meta["delay"] = play.buffer.delay
        meta["queue_remaining"] = 0 if rest is None else len(rest)
        if rest is not None:
            meta["unexecuted_chunk"] = rest

    def _on_tick(self, tick: Tick) -> None:
        running = [play for play in self._plays.values() if play.running and play.end is None]
        if not running:
            self._ticking = False
            self._sim.set_ticker(None)
            return
        # Also those that a job between the ticks has cost, such as another slot's reset.
        missed, self._last_index = tick.index - self._last_index - 1, tick.index
        due = []
        for play in running:
            play.cadence.missed += missed if play.tick else 0
            if (action := self._next(play)) is not None:
                play.cadence.late.record(tick.late_ns)
                due.append((play, action))
        self._advance(due)
        self._ticker.skip()

    def _next(self, play: RealtimePlay) -> Due | None:
        """The action for the play's next tick, a holding one if it is starved; None: that ended the episode."""
        due = play.buffer.pop(play.tick + 1)
        if due is not None:
            play.starved_run = 0
            return due
        play.starved_run += 1
        play.cadence.starved += 1
        starved_s = play.starved_run / self._ticker.rate_hz
        limit_s = 0.0 if self._timing.on_miss == "stop" else self._timing.policy_deadline_s
        if starved_s > limit_s:
            expected = "this world stops on a miss" if limit_s == 0 else f"policy_deadline_s is {limit_s:g}"
            late = f", {play.cadence.stale} chunks came too late" if play.cadence.stale else ""
            message = f"no action for {play.starved_run} ticks ({starved_s:g} s{late}); {expected}"
            self._deliver([self._failed(play, PolicyDeadline(message))])
            return None
        return Due(self.world.checks.hold(play.last_action), None, None, None)
