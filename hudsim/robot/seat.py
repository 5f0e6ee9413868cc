"""``Seat``: one agent's connection to a world: it claims an episode, plays it, and may claim the next."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from hudsim.contract import Checks, Contract
from hudsim.errors import EpisodeOver, HudsimError, LinkError, LinkLost, PolicyDeadline, WireError
from hudsim.net import Link
from hudsim.robot.buffer import Pending
from hudsim.robot.ending import CANCELLED, MAX_STEPS, POLICY_FAILED, POLICY_LOST, End
from hudsim.robot.engine import Delivery, worlds_fault
from hudsim.robot.outbox import CREDIT, Outbox
from hudsim.robot.slots import Slot
from hudsim.wire.codec import encode
from hudsim.wire.session import Ack, Actions, Claim, Peer, WorldSession
from hudsim.wire.session import End as EndFrame

__all__ = ["House", "Seat"]

log = logging.getLogger(__name__)

_OWN_ENDS = {"max_steps": MAX_STEPS, "cancelled": CANCELLED, "policy_failed": POLICY_FAILED}
_CLEAN_CLOSE = 1000
_UNREAD = 4  # observations that may wait for a slow reader who goes on acting


class House(Protocol):
    """What a seat needs of its server."""

    contract: Contract
    checks: Checks
    late_frames: int

    async def claim(self, token: str | None) -> Slot:
        """The slot for a claim; starts an episode where nobody else does."""
        ...

    def attach(self, slot: Slot, peer: Peer) -> None:
        """Have the first observation sent."""
        ...

    def act(self, slot: Slot, pending: Pending) -> None:
        """Pass a checked action on."""
        ...

    def act_now(self, slot: Slot, pending: Pending) -> None:
        """The same on the sim thread: what follows from it is done before this returns."""
        ...

    def lend(self, link: Link, job: Callable[[], None]) -> None:
        """Have the sim thread run ``job`` when something has come on ``link``, which the loop does not read then."""
        ...

    async def end(self, slot: Slot, end: End, error: HudsimError | None = None) -> None:
        """End the slot's episode from the agent's side; the seat is told as of any other end."""
        ...


class Seat:
    """Frames from one link, through the session and the contract, to the server; and what comes back."""

    def __init__(self, house: House, link: Link, session: WorldSession) -> None:
        self._house = house
        self._link = link
        self._session = session
        self._slot: Slot | None = None
        timing = house.contract.timing
        self._realtime = timing.mode == "realtime"
        self._policy_deadline_s = timing.policy_deadline_s
        action = house.contract.action
        self._action = np.dtype(action.dtype), action.shape or ()
        self._outbox = Outbox(link, credit=CREDIT if self._realtime else None, on_unsendable=self._unsendable)
        self._loop = asyncio.get_running_loop()
        self._due_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._gone = False
        self._closing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._newest = 0
        self._played: deque[str] = deque(maxlen=64)
        self._left = self._come = 0  # deliveries left to the loop thread, and those that have come to it

    @property
    def skipped(self) -> int:
        """Observations that this agent was not sent because a newer one came first."""
        return self._outbox.skipped

    async def serve(self) -> None:
        """Until the agent goes, or does what ends it."""
        self._outbox.put(self._session.greeting())
        self._arm(0)
        end, error = POLICY_LOST, None
        try:
            while True:
                await self._receive(await self._link.receive())
        except LinkLost as lost:
            # An agent that hangs up in good order has had enough, and is graded as it stands; HUD's has no word for it.
            if lost.data.get("close_code") == _CLEAN_CLOSE:
                end = MAX_STEPS
        except HudsimError as refused:
            end, error = End.of(refused), refused
        except Exception as ours:
            log.exception("a seat failed")
            error = HudsimError(f"the server failed: {type(ours).__name__}: {ours}")
            end = End.of(error)
        finally:
            try:
                await self._leave(end, error)
            finally:
                self._outbox.close()
                self._session.close()

    async def _leave(self, end: End, error: HudsimError | None) -> None:
        """Give the slot up, and say why if there is somebody to tell."""
        self._gone = True
        if self._timer is not None:
            self._timer.cancel()
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.seat = None  # it is told by the error, or cannot be told any more
            await self._house.end(slot, end, error)
        if error is not None and not isinstance(error, LinkError):
            await self._say_goodbye(error)
        if self._closing is not None:
            await self._closing

    def show(self, delivery: Delivery) -> None:
        """What the sim thread has for this agent."""
        if delivery.error is not None:
            self.dismiss(delivery.error)
            return
        over = delivery.result is not None
        if delivery.frame is not None:
            self._newest = delivery.obs_index
            self._outbox.observation(delivery.obs_index, delivery.frame, last=over)
        elif self._session.peer.rich:
            self._outbox.put(encode({"result": delivery.result}))
        elif delivery.result is not None:  # openpi/0 has no word for it, and would wait for ever
            self.dismiss(EpisodeOver(f"the episode was ended from outside: {delivery.result['end']}"))
        if over:
            self._slot = None
            self._session.ended()
            self._disarm()
        elif not self._realtime or delivery.obs_index == 0:
            self._arm(delivery.obs_index)

    def show_now(self, delivery: Delivery) -> bool:
        """As :meth:`show`, from the sim thread and past the loop thread, where that is possible; whether it was.

        Only for an observation that is neither the first (its deadline is the warm-up's) nor the last, and only if
        nothing was left to the loop thread before it.
        """
        frame, first_or_last = delivery.frame, delivery.obs_index == 0 or delivery.result is not None
        if frame is None or first_or_last or self._realtime or self._left != self._come:
            self._left += 1
            return False
        # First, so that the answer, which the loop thread gets, finds them so.
        self._newest = delivery.obs_index
        self._due_s = self._loop.time() + self._policy_deadline_s
        if self._outbox.send_now(frame):
            return True
        self._left += 1
        return False

    def take_back(self) -> None:
        """The sim thread is busy with something long: the loop thread reads again, to notice if the agent goes."""
        self._link.take_back()

    def come(self) -> None:
        """On the loop thread: a delivery that :meth:`show_now` left to it has come."""
        self._come += 1

    def dismiss(self, error: HudsimError) -> None:
        """Tell the agent why it cannot go on, and close."""
        self._slot = None
        self._disarm()
        if self._closing is None:
            self._closing = asyncio.create_task(self._say_goodbye(error))

    async def _say_goodbye(self, error: HudsimError) -> None:
        self._outbox.put(self._session.error(error))
        await self._outbox.drain(1.0)
        await self._link.close(error.code or 1011, error.name)

    async def _receive(self, frame: bytes | str) -> None:
        received_ns = time.monotonic_ns()
        match self._session.receive(frame):
            case Actions() as actions:
                self._act(actions, received_ns)
            case Ack(index):
                self._acknowledge(index)
            case Claim(token, peer):
                self._disarm()  # a reset takes as long as it takes
                self._link.open_gate()
                self._outbox.new_episode()
                self._newest = 0
                self._slot = slot = await self._house.claim(token)
                slot.seat = self
                self._played.append(str(slot.token))
                self._session.playing(str(slot.token), *self._action)
                self._house.attach(slot, peer)
            case EndFrame(reason):
                if reason not in _OWN_ENDS:
                    raise WireError(f"end: got {reason!r}, expected one of {', '.join(_OWN_ENDS)}")
                if self._slot is not None:
                    await self._house.end(self._slot, _OWN_ENDS[reason])

    def _act(self, actions: Actions, received_ns: int) -> None:
        slot = self._slot
        if slot is None or (actions.episode is not None and actions.episode != slot.token):
            if actions.episode not in (None, *self._played):
                raise WireError(f"episode: got {actions.episode!r}, expected one that was claimed on this connection")
            self._house.late_frames += 1
            return
        pending = self._checked(actions, received_ns)
        if self._outbox.behind > _UNREAD:
            raise WireError(f"got an action while {self._outbox.behind} observations before it are unread")
        self._disarm()
        self._acknowledge(self._newest if actions.obs_index is None else actions.obs_index)
        self._house.act(slot, pending)
        if not self._realtime and self._session.has_usual:
            self._house.lend(self._link, self._act_now)

    def _act_now(self) -> None:
        """On the sim thread: the answer to the observation that it has sent, past the loop thread.

        Two threads that take turns at a tick cost it 50 to 100 µs. Whatever is not just the usual action is the
        loop thread's, which then reads on.
        """
        frame = self._link.read_now()
        if frame is None:
            return
        slot, pending = self._slot, None
        if slot is not None and not self._outbox.behind:
            with contextlib.suppress(HudsimError):  # raised again there
                actions = self._session.usual(frame)
                if actions is not None and (actions.obs_index or 0) <= self._newest:
                    pending = self._checked(actions, time.monotonic_ns())
        if slot is None or pending is None:
            self._link.give_back()
            return
        self._link.keep()
        self._due_s = None
        self._house.act_now(slot, pending)

    def _checked(self, actions: Actions, received_ns: int) -> Pending:
        """Actions as the contract allows them. Raises :class:`~hudsim.errors.ContractError`."""
        lenient = not self._session.peer.rich
        checks = self._house.checks
        if self._realtime and actions.array.ndim > len(self._action[1]):
            chunk, clipped = checks.chunk(actions.array, lenient=lenient)
        else:
            action, mask = checks.action(actions.array, lenient=lenient)
            chunk, clipped = action[None], None if mask is None else mask[None]
        return Pending(chunk, clipped, actions.obs_index, received_ns)

    def _acknowledge(self, index: int) -> None:
        if index > self._newest:
            raise WireError(f"obs_index: got {index}, but the newest observation is {self._newest}")
        self._outbox.acknowledge(index)

    def _arm(self, index: int) -> None:
        """The next action is due: soon, or after a warm-up if it is the first.

        Only the time is noted; one timer looks at it, so that a tick does not make and cancel one.
        """
        timing = self._house.contract.timing
        seconds = timing.warmup_s if index == 0 else timing.policy_deadline_s
        self._due_s = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due_s:
            self._look_at(self._due_s)

    def _disarm(self) -> None:
        """Nothing is due now; what is next may be within ``policy_deadline_s``, and the sim thread moves no timer."""
        self._due_s = None
        soon_s = self._loop.time() + self._policy_deadline_s
        if self._timer is None or self._timer.when() > soon_s:
            self._look_at(soon_s)

    def _look_at(self, when_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._gone else self._loop.call_at(when_s, self._look)

    def _look(self) -> None:
        """The timer: what was due then may have come since, and something else be due later."""
        now_s, due_s = self._loop.time(), self._due_s
        self._timer = None
        if due_s is None:  # the sim thread may set it before the next look
            self._look_at(now_s + self._policy_deadline_s)
        elif now_s < due_s:
            self._look_at(due_s)
        else:
            self._expired()

    def _expired(self) -> None:
        slot, self._slot = self._slot, None
        timing = self._house.contract.timing
        if slot is None:
            self.dismiss(PolicyDeadline(f"no claim within {timing.warmup_s:g} s"))
            return
        first = self._newest == 0
        name, seconds = ("warmup_s", timing.warmup_s) if first else ("policy_deadline_s", timing.policy_deadline_s)
        self._give_up(slot, PolicyDeadline(f"no action for observation {self._newest} within {name} = {seconds:g} s"))

    def _unsendable(self, cause: Exception) -> None:
        """An observation could not be made into a frame: the agent would wait for it for ever."""
        slot, error = self._slot, worlds_fault(cause)
        if slot is None:  # it was the last, and the episode is on record
            self.dismiss(error)
        else:
            self._give_up(slot, error)

    def _give_up(self, slot: Slot, error: HudsimError) -> None:
        """End the slot's episode, and tell the agent why."""
        slot.seat = None
        self._ending = asyncio.create_task(self._house.end(slot, End.of(error), error))
        self.dismiss(error)
