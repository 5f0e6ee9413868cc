"""``RobotServer``: a world on one port. Agents play at ``/robot/<name>``, an environment drives at ``/control``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

from hudsim.bridge import Episode
from hudsim.capability import Capability
from hudsim.errors import EpisodeOver, HudsimError, PolicyDeadline, ShuttingDown, SimHung, UsageError, WireError
from hudsim.loop import SimThread, clock_id
from hudsim.net import Address, Link, Server, serve_rpc
from hudsim.robot.buffer import Pending
from hudsim.robot.ending import MAX_STEPS, End
from hudsim.robot.engine import Delivery
from hudsim.robot.engines import make_engine
from hudsim.robot.play import lost_record
from hudsim.robot.seat import Seat
from hudsim.robot.slots import Slot, Slots
from hudsim.robot.spec import Serving
from hudsim.robot.world import World
from hudsim.wire.codec import encode
from hudsim.wire.ring import Ring, room
from hudsim.wire.session import PROTOCOL, Frame, Peer, WorldSession

__all__ = ["RobotServer"]

_CLOSE_S = 1.0  # how long the world may take to close
_LOOK_S = 0.1  # how often the watchdog looks


class RobotServer:
    """Serves ``world``, whose sim thread is ``sim``, from the event loop that :meth:`start` is called on.

    name
        The capability's name: agents connect to ``/robot/<name>``.
    bearer
        The token that opens everything here; None or "" lets everybody in. Agents get another one, which opens
        ``/robot/<name>`` alone.
    autostart
        There is no environment in front: a claim without a token starts an episode by itself, with the seeds
        ``seed, seed + 1, …``.
    task_args
        What every reset gets, beside its own arguments.
    watchdog_s
        A bridge that does not return for so long has hung: every episode ends with
        :class:`~hudsim.errors.SimHung`, and ``hung`` is set.
    """

    def __init__(
        self,
        world: World,
        sim: SimThread,
        *,
        bearer: str | None,
        name: str = "robot",
        autostart: bool = False,
        seed: int = 0,
        task_args: Mapping[str, Any] = MappingProxyType({}),
        watchdog_s: float = 60.0,
        max_frame_bytes: int = 64 << 20,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.contract, self.checks = world.contract, world.checks
        self.late_frames = 0
        self.hung = asyncio.Event()
        self._name = name
        self._world, self._sim = world, sim
        self._engine = make_engine(world, sim, self._deliver)
        self._slots = Slots(world.num_slots)
        self._seats: set[Seat] = set()
        self._ending: set[asyncio.Future[None]] = set()
        self._ends: Counter[str] = Counter()
        self._skipped = self._ticks = 0
        self._autostart, self._next_seed = autostart, seed
        self._task_args = dict(task_args)
        self._shown_bytes = room(feature.nbytes for feature in world.contract.observations.values())
        self._watchdog_s = watchdog_s
        self._watch: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._greeting = {
            **world.metadata,
            "contract": world.contract.to_json(),
            "limits": {"max_frame_bytes": max_frame_bytes},
            "instance": secrets.token_hex(8),
            "clock": clock_id(),
            "num_envs": world.num_slots,
        }
        try:
            encode(self._greeting)
        except WireError as error:
            raise UsageError(f"the world's metadata: {error.message}") from None
        self._net = Server(
            {f"/robot/{name}": self._seat, "/control": self._control},
            pages={"/healthz": self._health, "/metrics": self._metrics},
            bearer=bearer,
            max_frame_bytes=max_frame_bytes,
            tls=tls,
        )
        self._pass = self._net.admit(f"/robot/{name}") if bearer else None

    @classmethod
    def of(cls, world: World, sim: SimThread, how: Serving, *, task_args: Mapping[str, Any]) -> Self:
        """As ``how`` says. Raises :class:`~hudsim.errors.UsageError` for a certificate that cannot be read."""
        return cls(
            world,
            sim,
            bearer=how.bearer,
            name=how.name,
            autostart=how.autostart,
            seed=how.seed,
            task_args=task_args,
            watchdog_s=how.watchdog_s,
            tls=how.tls(),
        )

    # Life -----------------------------------------------------------------------------------------------------

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Bind and serve. Idempotent."""
        self._loop = asyncio.get_running_loop()
        if self._watch is None:
            self._watch = asyncio.create_task(self._watchdog(), name="hudsim-watchdog")
        return await self._net.start(host, port)

    async def stop(self) -> None:
        """Send every agent away (4503), close the port, then the world. Idempotent."""
        if self._watch is None:
            return
        self._watch.cancel()
        self._watch = None
        for seat in list(self._seats):
            seat.dismiss(ShuttingDown("the server is going down"))
        await self._net.stop()
        if not self.hung.is_set():
            with contextlib.suppress(TimeoutError):  # a sim thread that does not come back is left
                async with asyncio.timeout(_CLOSE_S):
                    await asyncio.wrap_future(self._engine.close())

    @property
    def address(self) -> Address:
        """Where the world is played, with the token that opens all else too: for its operator, never for an agent."""
        return self._net.address.at(f"/robot/{self._name}")

    def capability(self) -> Capability:
        """How an agent reaches the world, with its contract. Its token opens nothing besides."""
        params = {"contract": self.contract.to_json(), **self._world.params}
        return Capability(self._name, PROTOCOL, replace(self.address, bearer=self._pass).url, params)

    # Episodes -------------------------------------------------------------------------------------------------

    async def reset(self, *, seed: int | None = None, **task_args: Any) -> Episode:
        """Start an episode in a free slot. Raises :class:`~hudsim.errors.NoFreeSlot`, or what the task refuses.

        ``seed``: a whole number from 0; None: none is given to the world.
        """
        given: object = seed  # it may come from a peer
        if given is not None and (type(given) is not int or not 0 <= given < 2**63):
            raise UsageError(f"seed: got {given!r}, expected a whole number from 0, below 2^63")
        slot = await self._begin(self._slots.take(), seed, task_args)
        assert slot.token is not None
        return Episode(slot.prompt, slot.token, seed, slot.index)

    async def result(self, token: str | None = None) -> dict[str, Any]:
        """The record of the episode of ``token`` (None: the only one); frees its slot.

        One that still runs ends here, as at a limit of its agent's own: it is graded as it stands. Whoever asks for a
        grade has done with the agent, and one that would not play must not get off without.
        """
        slot = self._slots.find(token)
        token = slot.token
        if slot.live:
            await self.end(slot, MAX_STEPS)
        record = slot.result
        if record is None or token is None or slot.token != token:
            raise EpisodeOver(f"episode {token} has been asked for already")
        self._give_back(slot, token)
        return record

    async def _begin(self, slot: Slot, seed: int | None, task_args: Mapping[str, Any]) -> Slot:
        assert slot.token is not None
        if self.hung.is_set():
            slot.free()
            raise self._hang()
        slot.seed = seed
        try:
            slot.prompt = await self._patiently(
                self._engine.start(slot.index, slot.token, seed, {**self._task_args, **task_args})
            )
        except BaseException:
            self._give_back(slot, slot.token)
            raise
        slot.ready = True
        assert self._loop is not None
        self._loop.call_later(self.contract.timing.warmup_s, self._expired, slot, slot.token)
        return slot

    def _give_back(self, slot: Slot, token: str) -> None:
        """A reset failed, or whoever asked for it has gone."""
        self._engine.release(slot.index, token)
        slot.free()

    def _expired(self, slot: Slot, token: str) -> None:
        """An episode that nobody claims does not hold up the others for ever."""
        if slot.token == token and slot.live and not slot.claimed:
            error = PolicyDeadline(f"nobody claimed the episode within warmup_s = {self.contract.timing.warmup_s:g} s")
            self._ending.add(task := asyncio.ensure_future(self.end(slot, End.of(error), error)))
            task.add_done_callback(self._ending.discard)

    # What a seat asks -----------------------------------------------------------------------------------------

    async def claim(self, token: str | None) -> Slot:
        """The slot for a claim; starts an episode where there is no environment in front to do it."""
        slot = self._slots.claimable(token)
        if slot is None:
            if not self._autostart:
                slot = self._slots.claimable(self._slots.find(None).token)
                assert slot is not None
            else:
                # An agent that has just hung up may still be giving its slot back: its end was queued before this.
                await self._patiently(self._sim.submit(int))
                seed, self._next_seed = self._next_seed, self._next_seed + 1
                slot = self._slots.take()
                slot.claimed = slot.ungraded = True  # before the reset, during which others may claim
                await self._begin(slot, seed, {})
        slot.claimed = True
        return slot

    def attach(self, slot: Slot, peer: Peer) -> None:
        """Have the slot's first observation sent."""
        assert slot.token is not None
        self._engine.attach(slot.index, slot.token, peer)

    def act(self, slot: Slot, pending: Pending) -> None:
        """Pass a checked action on to the sim thread."""
        assert slot.token is not None
        self._engine.act(slot.index, slot.token, pending)

    def act_now(self, slot: Slot, pending: Pending) -> None:
        """The same on the sim thread: what follows from it is done before this returns."""
        if (token := slot.token) is not None:
            self._engine.act_now(slot.index, token, pending)

    def lend(self, link: Link, job: Callable[[], None]) -> None:
        """Have the sim thread run ``job`` when something has come on ``link``, which the loop does not read then."""
        link.lend(self._sim, job)

    async def end(self, slot: Slot, end: End, error: HudsimError | None = None) -> None:
        """End the slot's episode from outside, unless it has ended by itself."""
        if not slot.live:
            return
        token = slot.token  # by the time that it has ended, the slot may hold another episode
        assert token is not None
        try:
            record = await self._patiently(self._engine.finish(slot.index, token, end, error))
        except SimHung:
            return  # which ended it, with a record
        self._delivered([Delivery(slot.index, token, 0, result=record)])

    # From the sim thread --------------------------------------------------------------------------------------

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        """On the sim thread: straight to the socket where that is possible, else by way of the loop thread."""
        left: list[tuple[Seat | None, Delivery]] = []
        for delivery in deliveries:
            slot = self._slots[delivery.slot]
            seat = slot.seat if slot.token == delivery.token else None
            if seat is None or not seat.show_now(delivery):
                if isinstance(delivery.frame, Frame):
                    delivery.frame.data()  # of its own, before the world's next step
                left.append((seat, delivery))
        if left:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._come, left)

    def _come(self, left: Sequence[tuple[Seat | None, Delivery]]) -> None:
        """On the loop thread: what the sim thread left to it."""
        for seat, delivery in left:
            if seat is not None:
                seat.come()
            self._delivered([delivery])

    def _delivered(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            slot = self._slots[delivery.slot]
            if slot.token != delivery.token or slot.result is not None:
                continue
            seat = slot.seat
            if delivery.result is not None:
                slot.result, slot.seat = delivery.result, None
                self._ends[str(delivery.result["end"])] += 1
                self._ticks += int(delivery.result["ticks"])
            if seat is not None:
                seat.show(delivery)

    # The watchdog ---------------------------------------------------------------------------------------------

    async def _watchdog(self) -> None:
        while not self.hung.is_set():
            await asyncio.sleep(min(_LOOK_S, self._watchdog_s / 2))
            since_ns = self._sim.pulse.busy_since_ns
            if not since_ns:
                continue
            busy_s = (time.monotonic_ns() - since_ns) / 1e9
            if busy_s > _LOOK_S:
                for seat in self._seats:
                    seat.take_back()
            if busy_s > self._watchdog_s:
                self._declare_hung()

    def _declare_hung(self) -> None:
        self.hung.set()
        error = self._hang()
        for slot in self._slots:
            if slot.live:
                record = lost_record(
                    slot.token, slot.index, slot.seed, slot.prompt, end=End.of(error), message=error.message
                )
                self._delivered([Delivery(slot.index, str(slot.token), 0, result=record, error=error)])

    def _hang(self) -> SimHung:
        return SimHung(f"the bridge has not returned for {self._watchdog_s:g} s (its watchdog)")

    async def _patiently(self, job: Any) -> Any:
        """Wait for a job on the sim thread, or for the watchdog to find that it will not come."""
        future = asyncio.wrap_future(job)
        hung = asyncio.ensure_future(self.hung.wait())
        try:
            await asyncio.wait({future, hung}, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise self._hang()
            return future.result()
        finally:
            hung.cancel()
            if not future.done():
                future.cancel()

    # What is served -------------------------------------------------------------------------------------------

    async def _seat(self, link: Link) -> None:
        seat = Seat(self, link, self._session(link))
        self._seats.add(seat)
        try:
            await seat.serve()
        finally:
            self._seats.discard(seat)
            self._skipped += seat.skipped

    def _session(self, link: Link) -> WorldSession:
        return WorldSession(self._greeting, Ring.create(self._shown_bytes) if link.same_host else None)

    async def _control(self, link: Link) -> None:
        async def capability() -> dict[str, Any]:
            return self.capability().to_manifest()

        started: set[str] = set()

        async def reset(seed: int | None = None, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
            episode = await self.reset(seed=seed, **(args or {}))
            started.add(episode.token)
            return dict(episode)

        async def result(token: str | None = None) -> dict[str, Any]:
            record = await self.result(token)
            started.discard(record["episode"])
            return record

        try:
            await serve_rpc(link, {"capability": capability, "reset": reset, "result": result})
        finally:
            for token in started:  # whoever would have asked has gone
                with contextlib.suppress(HudsimError):
                    await self.result(token)

    def _health(self) -> tuple[str, str]:
        """Needs no token, so that whoever restarts servers can ask; so it says nothing else."""
        return "application/json", json.dumps({"status": "hung" if self.hung.is_set() else "ok"})

    def _metrics(self) -> tuple[str, str]:
        skipped = self._skipped + sum(seat.skipped for seat in self._seats)
        lines = [
            "# TYPE hudsim_episodes_total counter",
            *(f'hudsim_episodes_total{{end="{end}"}} {count}' for end, count in sorted(self._ends.items())),
            "# TYPE hudsim_ticks_total counter",
            f"hudsim_ticks_total {self._ticks}",
            "# TYPE hudsim_observations_skipped_total counter",
            f"hudsim_observations_skipped_total {skipped}",
            "# TYPE hudsim_late_frames_total counter",
            f"hudsim_late_frames_total {self.late_frames}",
            "# TYPE hudsim_episodes_live gauge",
            f"hudsim_episodes_live {sum(slot.live for slot in self._slots)}",
            "# TYPE hudsim_agents gauge",
            f"hudsim_agents {len(self._seats)}",
        ]
        return "text/plain; version=0.0.4", "\n".join(lines) + "\n"
