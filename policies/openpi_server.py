"""``OpenpiServer``: a policy that a server of openpi's protocol runs."""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import ConnectError, DecodeError, LinkError, LinkLost, PolicyDeadline, PolicyFailed, UsageError
from hudsim.given import given_seconds
from hudsim.loop.run import new_event_loop
from hudsim.net import Address, Link, connect
from hudsim.robot.batch_rows import kind_of
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model
from hudsim.wire.codec import decode, encode

__all__ = ["OpenpiServer"]

_ANSWER_S = 120.0
_GRACE_S = 5.0  # the world's own deadline comes first, where it has one: that is how such an episode is to end
_LINE, _TRACEBACK = 500, 16 << 10  # characters


class OpenpiServer(Model):
    """Asks openpi's ``WebsocketPolicyServer``, or any server of that protocol.

    On connecting it says its metadata; it then answers each observation, a msgpack map, by a map whose ``actions``
    are [T, *action shape]. A row of the batch is an observation: its arrays and lists without the first axis, and what
    is neither as it is (``prompt`` is a text then). Each question under way has a connection of its own, which is
    kept for the next: one model serves many agents at once.

    Raises :class:`~hudsim.errors.PolicyFailed` in the server's words for what it says wrong (``traceback`` in its data
    is what the server sent) and if it goes away, and :class:`~hudsim.errors.PolicyDeadline` if it hangs; the next
    question dials anew.

    url
        ``ws://HOST:PORT`` or ``wss://…``. It is dialled at once: raises :class:`~hudsim.errors.ConnectError` if no
        policy server is there, and :class:`~hudsim.errors.UsageError` if a world is.
    connect_timeout_s
        Seconds until the server must have said its metadata.

    metadata
        What the server said of itself.
    """

    def __init__(self, url: str, *, connect_timeout_s: float = 10.0) -> None:
        self._address = Address.parse(url)
        self._connect_timeout_s = given_seconds(connect_timeout_s, "connect_timeout_s")
        self._axes, self._answer_s = 2, _ANSWER_S
        self._idle: list[Link] = []  # shared with every fork
        self._loop = _network()
        self.metadata: dict[str, Any] = asyncio.run_coroutine_threadsafe(self._meet(), self._loop).result()

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """A question may take as long as the world waits for an episode's first action, and then a little."""
        self._axes = 1 + len(contract.action.shape or ())
        self._answer_s = max(contract.timing.warmup_s, contract.timing.policy_deadline_s) + _GRACE_S

    def infer(self, batch: Any) -> Array:
        """[N, T, *action shape]; of several rows one is asked after the other."""
        return self._asked(batch).result()

    async def ainfer(self, batch: Any) -> Array:
        return await asyncio.wrap_future(self._asked(batch))

    def close(self) -> None:
        """Hang up, for every fork; who asks later dials anew."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()

    def _asked(self, batch: Any) -> Future[Array]:
        return asyncio.run_coroutine_threadsafe(self._chunks(batch), self._loop)

    # On the loop of the connections:

    async def _chunks(self, batch: Any) -> Array:
        count, _ = kind_of(batch)
        chunks = [await self._ask(_row(batch, index)) for index in range(count)]
        if len({chunk.shape for chunk in chunks}) > 1:
            shapes = ", ".join(str(list(chunk.shape)) for chunk in chunks)
            raise PolicyFailed(f"{self._name} answered the rows of one batch with actions {shapes}; expected one shape")
        return np.stack(chunks)

    async def _ask(self, observation: Any) -> Array:
        """The actions [T, *action shape] for one observation."""
        frame = encode(observation)
        link: Link | None = None
        try:
            async with asyncio.timeout(self._answer_s):
                link = self._take_idle()
                if link is None:
                    link, _ = await self._dial()
                await link.send(frame)
                answer = await link.receive()
            actions = self._read(answer)
        except BaseException as error:
            if link is not None:
                link.abort()  # what it may still say answers nothing that is asked later
            if isinstance(error, TimeoutError):
                raise PolicyDeadline(f"{self._name} did not answer within {self._answer_s:g} s") from None
            if isinstance(error, LinkError):
                raise PolicyFailed(f"policy server {error.message.removeprefix('policy server ')}") from error
            raise
        self._idle.append(link)
        return actions

    def _read(self, answer: bytes | str) -> Array:
        if isinstance(answer, str):
            last = (answer.strip().splitlines() or ["an error without words"])[-1].strip()
            raise PolicyFailed(f"{self._name} raised {last[:_LINE]}", traceback=answer[-_TRACEBACK:])
        try:
            said = decode(answer)
        except DecodeError as error:
            raise PolicyFailed(
                f"{self._name} answered with what is no msgpack-numpy message: {error.message}"
            ) from None
        if not isinstance(said, dict) or "actions" not in said:
            got = f"a map of {', '.join(said) or 'nothing'}" if isinstance(said, dict) else type(said).__name__
            raise PolicyFailed(f"{self._name} answered with {got}; expected a map with actions")
        actions = said["actions"]
        if not isinstance(actions, np.ndarray) or actions.ndim != self._axes or not len(actions):
            got = f"{actions.dtype}{list(actions.shape)}" if isinstance(actions, np.ndarray) else type(actions).__name__
            expected = ", ".join(["T", *["D"] * (self._axes - 1)])
            raise PolicyFailed(
                f"{self._name} answered with actions {got}; expected an array [{expected}], T at least 1"
            )
        return actions

    def _take_idle(self) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if link.gone() is None:
                return link
        return None

    async def _dial(self) -> tuple[Link, dict[str, Any]]:
        """A connection whose metadata have been said, and these."""
        link: Link | None = None
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                link = await connect(self._address, timeout_s=2 * self._connect_timeout_s)
                return link, self._greeted(await link.receive())
        except BaseException as error:
            if link is not None:
                link.abort()
            if isinstance(error, TimeoutError):
                raise ConnectError(f"{self._name} said nothing within {self._connect_timeout_s:g} s") from None
            if isinstance(error, LinkError):
                kind = ConnectError if isinstance(error, LinkLost) else type(error)
                raise kind(f"policy server {error.message}", **error.data) from error
            raise

    def _greeted(self, frame: bytes | str) -> dict[str, Any]:
        try:
            metadata = decode(frame)  # type: ignore[arg-type]  # it refuses a text itself
        except DecodeError as error:
            raise ConnectError(f"{self._name} is none of openpi's protocol; its first frame: {error.message}") from None
        if not isinstance(metadata, dict):
            got = type(metadata).__name__
            raise ConnectError(f"{self._name} is none of openpi's protocol: it began with {got}, expected a map")
        if "contract" in metadata:
            raise UsageError(f"{self._address.netloc} serves a world and no policy: it is what `hudsim run` plays")
        return metadata

    async def _meet(self) -> dict[str, Any]:
        link, metadata = await self._dial()
        self._idle.append(link)
        return metadata

    async def _hang_up(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    @property
    def _name(self) -> str:
        return f"policy server {self._address.netloc}"


def _row(value: Any, index: int) -> Any:
    """Row ``index`` of a batch, or of a part of one: what has no rows is for all of them."""
    if isinstance(value, Mapping):
        return {name: _row(inner, index) for name, inner in value.items()}
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return value[index]
    return value


@functools.cache
def _network() -> asyncio.AbstractEventLoop:
    """The loop of all connections, on a thread of its own: pings are answered whoever else is busy."""
    loop = new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="hudsim-openpi", daemon=True)
    thread.start()

    @atexit.register
    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)

    return loop
