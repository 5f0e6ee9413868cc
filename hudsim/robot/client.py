"""``RobotClient``: the agent's end of a world. Connect, take observations, send actions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from hudsim.capability import Capability
from hudsim.contract import Contract
from hudsim.errors import ConnectError, HudsimError, LinkLost
from hudsim.loop import Worker, clock_id
from hudsim.net import Address, Link, connect
from hudsim.robot.bridge import Array
from hudsim.robot.cadence import Cadence
from hudsim.robot.cameras import ENCODINGS, Cameras, undecoded
from hudsim.robot.newest import Newest
from hudsim.wire.session import AgentSession, Heard

__all__ = ["RobotClient"]


class RobotClient:
    """A connection to ``/robot/<name>`` that plays one episode after another.

    ::

        async with await RobotClient.connect(url) as robot:
            seen = await robot.get_observation()
            while not seen.over:
                await robot.send_action(policy(seen.data))
                seen = await robot.get_observation()

    contract
        What the world says that it shows and takes.
    transport
        How the large arrays of observations come: ``shm``, in memory shared with a world on this host, or ``socket``.
    skipped
        Observations of this episode that were not looked at because a newer one was there.

    Every method raises the world's typed error once it has sent one, :class:`~hudsim.errors.LinkLost` once the
    world is gone; nothing waits for ever on a peer that is dead.
    """

    def __init__(self, link: Link, session: AgentSession, contract: Contract, params: dict[str, Any]) -> None:
        self.contract = contract
        self.params = params
        self.skipped = 0
        self.cadence = Cadence()
        self.episode: str | None = None
        self._link = link
        self._session = session
        greeting = session.greeting
        self._same_clock = greeting is not None and greeting.metadata.get("clock") == clock_id()
        self._realtime = contract.timing.mode == "realtime"
        self._index = -1
        self._cameras = Cameras(contract)
        self._decoder = Worker("images")
        self._taken: tuple[Heard, int] | None = None
        self._newest = Newest(link, self._skip) if self._realtime else None

    @classmethod
    async def connect(
        cls,
        where: Capability | str,
        *,
        token: str | None = None,
        claim: bool = True,
        timeout_s: float = 10.0,
        shared_memory: bool = True,
        encodings: Sequence[str] | None = None,
    ) -> Self:
        """Dial ``where`` (a capability or its URL) and claim the episode of ``token``.

        ``token`` None claims the only episode that waits, or a new one from a server that stands alone.
        ``claim`` False leaves that to :meth:`claim`. ``shared_memory`` False has all arrays sent through the socket,
        also on one host. ``encodings`` are those that cameras may come in, if the contract says so; () has every image
        come raw, None is all that can be decoded here unless world and agent share memory. Raises
        :class:`~hudsim.errors.ConnectError` and its siblings within ``timeout_s``.
        """
        url = where if isinstance(where, str) else where.url
        link = await connect(Address.parse(url), timeout_s=timeout_s)
        session = AgentSession()
        try:
            async with asyncio.timeout(timeout_s):
                greeting = session.receive_greeting(await link.receive(), share=shared_memory)
        except TimeoutError:
            await link.close()
            raise ConnectError(f"{link.peer} accepted but said nothing within {timeout_s:g} s") from None
        except BaseException:
            await link.close()
            raise
        if encodings is None:
            local = shared_memory and greeting.metadata.get("clock") == clock_id()
            encodings = () if local else ENCODINGS
        session.encodings = tuple(encodings)
        params = {} if isinstance(where, str) else dict(where.params)
        contract = Contract.load(dict(greeting.contract or params.get("contract") or {}))
        session.expect(contract.layout)
        client = cls(link, session, contract, params)
        if claim:
            await client.claim(token)
        return client

    @property
    def transport(self) -> str:
        return "socket" if self._session.ring is None else "shm"

    @property
    def rich(self) -> bool:
        """Whether the world speaks hudsim/1: it counts ticks, types ends and keeps a record."""
        return self._session.rich

    async def claim(self, token: str | None = None) -> None:
        """Claim an episode; its first observation is the next. Legal after connecting and after each end."""
        self.episode, self.skipped, self._index = token, 0, -1
        self.cadence = Cadence()
        self._taken = None
        await self._send(self._session.claim(token))

    async def get_observation(self) -> Heard:
        """The next observation; in realtime the newest, once more than one has come.

        Waits as long as the world lives: how long it may take is the world's own business.
        """
        if self._taken is None:
            frame, received_ns = await self._next_frame()
            self._taken = self._session.receive(frame), received_ns
        heard, received_ns = self._taken
        if undecoded(heard.data):
            heard = await asyncio.wrap_future(self._decoder.submit(self._decoded, heard))
        await self._account(heard, received_ns)
        self._taken = None  # whoever cancels before this gets it the next time
        return heard

    async def send_action(self, action: Array, *, obs_index: int | None = None) -> None:
        """Send one action [*action shape]. ``obs_index``: what it was inferred from (None: the last one taken)."""
        await self._send_actions(action, obs_index)

    async def send_chunk(self, chunk: Array, *, obs_index: int | None = None) -> None:
        """Send a chunk [T, *action shape] to a realtime world. Row 0 is for the tick after ``obs_index``."""
        await self._send_actions(chunk, obs_index)

    async def end(self, reason: str) -> None:
        """End the episode from this side, for ``max_steps`` or ``cancelled``; the record is the next to come."""
        if self._session.rich:
            await self._send(self._session.end(reason))

    async def over(self) -> None:
        """Until the link has ended, by whichever end. For who is busy with something else than observations."""
        await self._link.ended()

    async def close(self) -> None:
        """Close the connection. Idempotent."""
        await self._link.close()
        self._decoder.stop()
        if self._newest is not None:
            await self._newest.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def _send_actions(self, array: Array, obs_index: int | None) -> None:
        index = self._index if obs_index is None else obs_index
        known = index if index >= 0 else None
        await self._send(self._session.actions(array, episode=self.episode, obs_index=known))

    async def _next_frame(self) -> tuple[bytes | str, int]:
        if self._newest is not None:
            return await self._newest.take()
        return await self._link.receive(), time.monotonic_ns()

    def _skip(self, frame: bytes | str) -> None:
        """The world shares memory, and a frame that nobody looks at holds a page of it: it is given back."""
        if self._session.ring is not None:
            with contextlib.suppress(HudsimError):
                self._session.receive(frame)

    def _decoded(self, heard: Heard) -> Heard:
        """On the decoder's thread."""
        began_ns = time.monotonic_ns()
        data = self._cameras.decode(heard.data)
        self.cadence.stages["decompress"].record(time.monotonic_ns() - began_ns)
        return replace(heard, data=data)

    async def _send(self, frame: bytes) -> None:
        try:
            await self._link.send(frame)
        except LinkLost:
            raise await self._verdict() from None

    async def _verdict(self) -> HudsimError:
        """Why the link ended: what the world said last tells more than that it closed."""
        try:
            async with asyncio.timeout(1.0):
                while True:
                    self._session.receive((await self._next_frame())[0])
        except HudsimError as error:
            return error
        except TimeoutError:
            return LinkLost(f"{self._link.peer} is gone")

    def _playing(self, episode: str | None) -> None:
        """What is seen is of ``episode``."""
        self.episode, action = episode, self.contract.action
        if episode is not None and action.complete:
            self._session.playing(episode, np.dtype(action.dtype), action.shape or ())

    async def _account(self, heard: Heard, received_ns: int) -> None:
        meta, index = heard.meta, heard.index
        if self._index < 0 or meta.get("episode") != self.episode:
            self._playing(meta.get("episode", self.episode))
        if self._same_clock and "t_send_ns" in meta:
            self.cadence.stages["wire"].record(received_ns - int(meta["t_send_ns"]))
        if index >= 0:
            gap = max(0, index - self._index - 1)
            self.skipped += gap
            self.cadence.skipped += gap
            self._index = index
            if self._realtime and not heard.over:
                await self._send(self._session.ack(index))
