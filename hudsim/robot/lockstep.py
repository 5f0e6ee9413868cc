"""Lockstep and paced: a step waits for its action."""

from __future__ import annotations

from hudsim.errors import ContractError, UsageError, WireError
from hudsim.loop import SimThread, Tick, Ticker
from hudsim.robot.buffer import Due, Pending
from hudsim.robot.cadence import Cadence
from hudsim.robot.engine import Deliver, Engine
from hudsim.robot.play import Play
from hudsim.robot.world import Row, World

__all__ = ["LockstepEngine", "PacedEngine", "rate_of"]


def rate_of(world: World) -> float:
    """The world's control rate in Hz. Raises :class:`~hudsim.errors.UsageError` if it has none."""
    if world.contract.control_rate is None:
        raise UsageError(f"mode {world.contract.timing.mode}: the world says no control_rate; give one (--rate HZ)")
    return world.contract.control_rate


class LockstepEngine(Engine[Play]):
    """Steps a slot as soon as its action is there. No wall clock: what happens is a function of the actions alone."""

    def _new_play(self, token: str, slot: int, seed: int | None, prompt: str, first: Row) -> Play:
        return Play(token, slot, seed, prompt, first, self.world.contract, Cadence())

    def _accept(self, play: Play, pending: Pending) -> None:
        if play.due is not None:
            raise WireError(f"got a second action after observation {play.tick}, expected one for each")
        if pending.obs_index not in (None, play.tick):
            raise WireError(
                f"got an action for observation {pending.obs_index}, expected one for the newest, {play.tick}"
            )
        if len(pending.chunk) != 1:
            raise ContractError(
                self.world.contract.action_name,
                got=f"a chunk of {len(pending.chunk)} actions",
                expected="one action for each observation",
                hint="chunks are for realtime",
            )
        mask = None if pending.clipped is None else pending.clipped[0]
        play.due = Due(pending.chunk[0], mask, play.tick, pending.received_ns)
        self._ready()

    def _ready(self) -> None:
        """Something may be due: step every slot that has its action; a world with a barrier waits for its last."""
        waiting = [play for play in self._plays.values() if play.end is None and play.due is None]
        if self.world.barrier and waiting:
            return
        due = [(play, play.due) for play in self._plays.values() if play.end is None and play.due is not None]
        for play, _ in due:
            play.due = None
        self._advance(due)

    def _ended(self, play: Play) -> None:
        self._ready()  # it may have been the one that a barrier waited for


class PacedEngine(LockstepEngine):
    """Lockstep on the ticker's grid: an action waits for the next deadline; a deadline without one is missed."""

    def __init__(self, world: World, sim: SimThread, deliver: Deliver) -> None:
        super().__init__(world, sim, deliver)
        self._ticker = Ticker(rate_of(world), sim.clock)
        self._on_grid = False
        self._last_index = -1

    def _new_play(self, token: str, slot: int, seed: int | None, prompt: str, first: Row) -> Play:
        return Play(token, slot, seed, prompt, first, self.world.contract, Cadence(self._ticker.rate_hz))

    def _ready(self) -> None:
        if not self._on_grid:
            self._on_grid = True
            self._ticker.start()
            self._last_index = -1
            self._sim.set_ticker(self._ticker, self._on_tick)

    def _on_tick(self, tick: Tick) -> None:
        playing = [play for play in self._plays.values() if play.end is None and play.tick + bool(play.due) > 0]
        if not playing:
            self._on_grid = False
            self._sim.set_ticker(None)
            return
        missed, self._last_index = tick.index - self._last_index - 1, tick.index
        for play in playing:
            play.cadence.missed += missed if play.tick else 0
            if play.due is None:
                play.cadence.missed += 1
            else:
                play.cadence.late.record(tick.late_ns)
        super()._ready()
        self._ticker.skip()
