"""``Outbox``: what waits to be sent to one agent. Memory stays flat however slow it reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from hudsim.errors import HudsimError
from hudsim.loop import Worker
from hudsim.net import Link
from hudsim.robot.lateframe import LateFrame
from hudsim.wire.session import Frame

__all__ = ["CREDIT", "Outbox"]

CREDIT = 2
"""Observations that may be on their way unacknowledged, where the world does not wait for the agent.

A loopback socket swallows dozens of camera frames before a send blocks, so the socket cannot say that the
agent is slow; only the agent can.
"""


class Outbox:
    """Sends frames in order on a task of its own.

    With ``credit`` (None: unlimited) an observation beyond it waits, and a newer one takes its place; ``skipped``
    counts those that were replaced. Last observations and errors never wait for credit. Late frames are packed on a
    thread of its own, just before they are sent; ``on_unsendable`` is told why one cannot be.
    """

    def __init__(
        self, link: Link, *, credit: int | None, on_unsendable: Callable[[Exception], object] = lambda _: None
    ) -> None:
        self.skipped = 0
        self._link = link
        self._credit = credit
        self._on_unsendable = on_unsendable
        self._packer = Worker("images")
        self._sent: deque[int] = deque()
        self._waiting: tuple[int, Frame | LateFrame] | None = None
        self._queue: deque[bytes | str | LateFrame] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._pump(), name="hudsim-outbox")

    def put(self, frame: bytes | str | LateFrame) -> None:
        """Send ``frame`` as soon as what is before it has gone."""
        self._queue.append(frame)
        self._idle.clear()
        self._wake.set()

    def observation(self, index: int, frame: Frame | LateFrame, *, last: bool = False) -> None:
        """Send observation ``index`` if there is credit; else keep it until there is, or a newer one comes."""
        self.skipped += self._waiting is not None
        self._waiting = None
        if self._credit is None or last or len(self._sent) < self._credit:
            if self._credit is not None:
                self._sent.append(index)
            if isinstance(frame, LateFrame):
                self.put(frame)
            else:
                frame.sent()
                self.put(frame.data())
        else:
            self._waiting = (index, frame)

    @property
    def behind(self) -> int:
        """How many frames wait because the agent does not read."""
        return len(self._queue)

    def send_now(self, frame: Frame | LateFrame) -> bool:
        """Send an observation from the sim thread, if nothing is before it and there is no credit; whether it was."""
        if isinstance(frame, LateFrame):
            return False
        now = self._credit is None and self._idle.is_set() and self._link.send_now(frame.pieces)
        if now:
            frame.sent()
        return now

    def acknowledge(self, index: int) -> None:
        """The agent has taken observation ``index``, and so every one before it."""
        while self._sent and self._sent[0] <= index:
            self._sent.popleft()
        if self._waiting is not None and self._credit is not None and len(self._sent) < self._credit:
            waiting, self._waiting = self._waiting, None
            self.observation(*waiting)

    def new_episode(self) -> None:
        """Observations count from 0 again."""
        self._sent.clear()
        self._waiting = None

    async def drain(self, timeout_s: float) -> None:
        """Wait until everything has been handed to the socket, at most ``timeout_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    def close(self) -> None:
        """Send nothing more."""
        self._link.shut_gate()
        self._task.cancel()
        self._packer.stop()

    async def _pump(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                frame = self._queue.popleft()
                if isinstance(frame, LateFrame):
                    try:
                        frame = await asyncio.wrap_future(self._packer.submit(frame.pack))
                    except Exception as error:  # noqa: BLE001 - an encoder has errors of its own
                        self._on_unsendable(error)
                        continue
                try:
                    await self._link.send(frame)
                except HudsimError:  # the reading side learns of it too, and ends the episode
                    self._idle.set()
                    return
            self._idle.set()
