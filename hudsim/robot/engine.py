"""``Engine``: advances a world's episodes on the sim thread. *When* is its subclasses' matter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from hudsim.errors import EpisodeOver, HudsimError, SimFailed
from hudsim.loop import SimThread
from hudsim.robot.buffer import Due, Pending
from hudsim.robot.cameras import Cameras
from hudsim.robot.ending import TERMINATED, TRUNCATED, End
from hudsim.robot.lateframe import LateFrame
from hudsim.robot.plain import plain
from hudsim.robot.play import Play
from hudsim.robot.world import Row, World
from hudsim.wire.ring import Page
from hudsim.wire.session import Frame, Peer, encode_observation
from hudsim.wire.usual_observations import UsualObservations

__all__ = ["Deliver", "Delivery", "Engine", "worlds_fault"]


class Delivery(NamedTuple):
    """What the sim thread has for a slot's agent: an observation, and at the end the record; or an error.

    ``obs_index`` counts the episode's observations from 0. ``result`` is there exactly when the episode is over.
    """

    slot: int
    token: str
    obs_index: int
    frame: Frame | LateFrame | None = None
    result: dict[str, Any] | None = None
    error: HudsimError | None = None


Deliver = Callable[[Sequence[Delivery]], None]
P = TypeVar("P", bound=Play)


class Engine(ABC, Generic[P]):
    """Owns the plays of a world.

    ``start``, ``attach``, ``act``, ``finish`` and ``close`` may be called from any thread: they queue to the sim
    thread. ``deliver`` is called there with what is ready, before the next slot is stepped.
    """

    def __init__(self, world: World, sim: SimThread, deliver: Deliver) -> None:
        self.world = world
        self._sim = sim
        self._deliver = deliver
        self._plays: dict[int, P] = {}
        self._now = sim.clock.now_ns
        self._rate_hz = world.contract.control_rate
        self._cameras = Cameras(world.contract)
        self._usual = UsualObservations.of(world.contract.layout)
        self._hashed = world.contract.timing.mode != "realtime"

    # From any thread

    def start(self, slot: int, token: str, seed: int | None, task_args: Mapping[str, Any]) -> Future[str]:
        """Reset ``slot`` for a new episode; its prompt."""
        return self._sim.submit(self._start, slot, token, seed, dict(task_args))

    def attach(self, slot: int, token: str, peer: Peer) -> None:
        """An agent has claimed the episode: send it the first observation."""
        self._sim.post(lambda: self._attach(slot, token, peer))

    def act(self, slot: int, token: str, pending: Pending) -> None:
        """The agent's next action or chunk, already checked. For an episode that is over: dropped."""
        self._sim.post(lambda: self._act(slot, token, pending))

    def act_now(self, slot: int, token: str, pending: Pending) -> None:
        """The same, at once; only on the sim thread."""
        self._act(slot, token, pending)

    def finish(self, slot: int, token: str, end: End, error: HudsimError | None = None) -> Future[dict[str, Any]]:
        """End the episode from outside, unless it has ended by itself; either way its record."""
        return self._sim.submit(self._finish, slot, token, end, error)

    def release(self, slot: int, token: str) -> None:
        """Forget an episode that is over and graded."""
        self._sim.post(lambda: self._release(slot, token))

    def close(self) -> Future[None]:
        """Close the world."""
        return self._sim.submit(self._close)

    # When things happen: on the sim thread

    @abstractmethod
    def _new_play(self, token: str, slot: int, seed: int | None, prompt: str, first: Row) -> P:
        """An episode that has just been reset."""

    @abstractmethod
    def _accept(self, play: P, pending: Pending) -> None:
        """An action or chunk has come. Raises what makes it unacceptable."""

    def _more_meta(self, play: P, meta: dict[str, Any]) -> None:
        """Add what an observation's ``meta`` says beside what is common to all timings."""
        return

    def _close(self) -> None:
        self._plays.clear()
        self.world.close()

    # What happens: on the sim thread

    def _start(self, slot: int, token: str, seed: int | None, task_args: dict[str, Any]) -> str:
        if self._plays.pop(slot, None) is not None:
            self.world.release(slot)
        prompt = self.world.reset(slot, seed, task_args)
        row = self.world.observe([slot])[slot]
        if isinstance(row, HudsimError):  # nobody has acted yet, so it is the world's own fault
            raise SimFailed(f"the world's first observation: {row.message}")
        first = Row({n: a.copy() for n, a in row.data.items()}, row.terminated, row.truncated, row.reward, row.success)
        self._plays[slot] = self._new_play(token, slot, seed, prompt, first)
        return prompt

    def _attach(self, slot: int, token: str, peer: Peer) -> None:
        play = self._live(slot, token)
        if play is None:
            self._deliver([Delivery(slot, token, 0, error=EpisodeOver(f"episode {token} is over"))])
            return
        play.peer, play.encodings = peer, self._cameras.crossing(peer)
        try:
            delivery = self._shown(play, play.first, {"prompt": play.prompt}, self._now(), peer.page())
        except Exception as error:  # noqa: BLE001 - whatever a bridge may have shown
            delivery = self._failed(play, worlds_fault(error))
        self._deliver([delivery])

    def _act(self, slot: int, token: str, pending: Pending) -> None:
        play = self._live(slot, token)
        if play is None:
            return
        try:
            self._accept(play, pending)
        except HudsimError as error:
            self._deliver([self._failed(play, error)])

    def _finish(self, slot: int, token: str, end: End, error: HudsimError | None) -> dict[str, Any]:
        play = self._plays.get(slot)
        if play is None or play.token != token:
            raise EpisodeOver(f"no episode {token!r} in slot {slot}")
        if play.end is None:
            play.end, play.error = end, error
            self._ended(play)
        return self._record(play)

    def _release(self, slot: int, token: str) -> None:
        play = self._plays.get(slot)
        if play is not None and play.token == token:
            del self._plays[slot]
            self.world.release(slot)

    def _ended(self, play: P) -> None:
        """The play was ended from outside, so that nobody waits for it any more."""

    def _live(self, slot: int, token: str) -> P | None:
        play = self._plays.get(slot)
        return play if play is not None and play.token == token and play.end is None else None

    def _advance(self, due: Sequence[tuple[P, Due]]) -> None:
        """One control tick of the plays given: all in one call, or each by itself and delivered before the next."""
        if self.world.together:
            self._tick(due)
        else:
            for one in due:
                self._tick([one])

    def _tick(self, due: Sequence[tuple[P, Due]]) -> None:
        if not due:
            return
        started_ns = self._now()
        failures = self.world.step({play.slot: action.action for play, action in due})
        stepped_ns = self._now()
        pages = {play.slot: play.peer.page() for play, _ in due if play.peer is not None}
        seen = self.world.observe([play.slot for play, _ in due if play.slot not in failures], pages)
        seen_ns = self._now()
        out = []
        for play, action in due:
            outcome = failures.get(play.slot) or seen[play.slot]
            if isinstance(outcome, HudsimError):
                out.append(self._failed(play, outcome))
                continue
            cadence = play.cadence
            cadence.tick(started_ns)
            cadence.stages["step"].record(stepped_ns - started_ns)
            cadence.stages["render"].record(seen_ns - stepped_ns)
            if action.received_ns is not None:
                cadence.stages["apply"].record(started_ns - action.received_ns)
            try:
                out.append(self._ticked(play, action, outcome, stepped_ns, pages.get(play.slot)))
            except Exception as error:  # noqa: BLE001 - whatever a bridge may have shown
                out.append(self._failed(play, worlds_fault(error)))
        self._deliver(out)

    def _ticked(self, play: P, action: Due, row: Row, sim_ns: int, page: Page | None) -> Delivery:
        play.tick += 1
        play.last_action = action.action
        play.account(row)
        if row.terminated or row.truncated:
            play.end = TERMINATED if row.terminated else TRUNCATED
        meta: dict[str, Any] = {"clipped": play.count_clipped(action.clipped)}
        if action.obs_index is not None:
            meta["action_age_ticks"] = play.tick - 1 - action.obs_index
            play.cadence.age_ticks.record(meta["action_age_ticks"])
        return self._shown(play, row, meta, sim_ns, page)

    def _shown(self, play: P, row: Row, meta: dict[str, Any], sim_ns: int, page: Page | None) -> Delivery:
        """The play's newest observation as a frame; with the record if it is the last."""
        peer = play.peer or Peer()
        if peer.rich:
            meta["episode"] = play.token
            meta["obs_index"] = play.tick
            meta["sim_time"] = None if self._rate_hz is None else play.tick / self._rate_hz
            meta["ticks_missed"] = play.cadence.missed
            meta["t_sim_ns"] = sim_ns
            self._more_meta(play, meta)
        result = self._record(play) if play.end else None
        if result and peer.rich:
            meta["result"] = result
        began_ns = self._now()
        meta["t_send_ns"] = began_ns
        write = partial(
            encode_observation,
            terminated=row.terminated,
            truncated=row.truncated,
            reward=row.reward,
            success=row.success,
            meta=meta,
            peer=peer,
            page=page,
            usual=self._usual,
        )
        frame = self._late(play, row, meta, write) if play.encodings else self._written(play, row, write)
        play.cadence.stages["encode"].record(self._now() - began_ns)
        return Delivery(play.slot, play.token, play.tick, frame, result)

    def _written(self, play: P, row: Row, write: Callable[[Mapping[str, Any]], Frame]) -> Frame:
        frame = write(row.data)
        play.by_memory += frame.page is not None
        play.cadence.frame_bytes.record(frame.size)
        return frame

    def _late(self, play: P, row: Row, meta: dict[str, Any], write: Callable[[Mapping[str, Any]], Frame]) -> LateFrame:
        play.account_packed()
        return LateFrame(
            row.data, meta, write, cameras=self._cameras, hashed=self._hashed, now=self._now, packed=play.packed
        )

    def _failed(self, play: P, error: HudsimError) -> Delivery:
        """The play is over by ``error``."""
        play.end, play.error = End.of(error), error
        return Delivery(play.slot, play.token, play.tick, result=self._record(play), error=error)

    def _record(self, play: P) -> dict[str, Any]:
        try:
            score: object = self.world.result(play.slot)
            if not isinstance(score, Mapping):
                raise SimFailed(f"result: got {type(score).__name__}, expected a dict")
            return play.result(plain(score))
        except HudsimError as error:
            return play.result({"score": None, "grading_error": error.message})


def worlds_fault(error: Exception) -> SimFailed:
    """What the world gave cannot be shown or sent; the peer has no part in it."""
    what = error.message if isinstance(error, HudsimError) else f"{type(error).__name__}: {error}"
    return SimFailed(f"what the world gave cannot be sent: {what}")
