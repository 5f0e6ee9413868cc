"""``ControlClient``: the caller's end of ``/control``. A dropped link is dialled again and the session resumed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from hudsim.capability import Capability
from hudsim.environment.control import PROTOCOL
from hudsim.environment.forwarder import Forwarder
from hudsim.environment.gateway import path_of
from hudsim.errors import ConnectError, HudsimError, LinkLost, TaskError, UnknownName, UsageError, WireError
from hudsim.given import given_a
from hudsim.net import Address, RpcClient, connect, host_id
from hudsim.wire.session import PROTOCOLS

__all__ = ["ControlClient"]

_ANSWER_S = 10.0
_GOODBYE_S = 1.5
_MOST_RESUMES = 20
_HELD_S = 10.0
_LONGEST_PAUSE_S = 1.0


class ControlClient:
    """One session with a served environment.

    ::

        async with await ControlClient.connect("ws://127.0.0.1:8000/?bearer=…") as control:
            started = await control.start("count", {"word": "strawberry", "letter": "r"})
            grade = await control.grade("3")

    manifest
        What ``hello`` said: ``env``, ``slots``, ``state``.
    session_id
        With it another connection can resume the session after :meth:`drop`.
    capabilities
        By name; as of the last start.
    resumes
        How often a broken link was dialled again.

    When the link breaks, a call dials again for up to ``reconnect_s`` (refused: 2 s), resumes the session and asks
    again; the environment does nothing twice. Then it raises :class:`~hudsim.errors.LinkLost`. That time, and at most
    20 resumes, are for the links of one call that break within 10 s, together; one that held longer does not count.

    An agent is never given the address that this end dials: whoever has that may start and grade tasks. What
    :meth:`reach` gives holds a pass for one capability, which ends with the session.
    """

    def __init__(self, address: Address, *, park_s: float, reconnect_s: float) -> None:
        self._address = address
        self._park_s, self._reconnect_s = park_s, reconnect_s
        self._rpc: RpcClient | None = None
        self._since_s = 0.0
        self._keys = (f"{secrets.token_hex(4)}-{n}" for n in itertools.count())
        self._forwarders: dict[str, Forwarder] = {}
        self._dialling = asyncio.Lock()
        self.manifest: dict[str, Any] = {}
        self.session_id: str | None = None
        self.capabilities: dict[str, Capability] = {}
        self.resumes = 0
        self._passes: dict[str, str] = {}

    @classmethod
    async def connect(
        cls,
        url: str | Address,
        *,
        session_id: str | None = None,
        park_s: float = 30.0,
        reconnect_s: float = 10.0,
        timeout_s: float = 10.0,
    ) -> Self:
        """Dial a served environment; ``session_id`` resumes a session that was left behind.

        park_s
            How long the session outlives a link that ends without a goodbye [s].

        Raises :class:`~hudsim.errors.ConnectError` and its siblings, :class:`~hudsim.errors.TaskError` for a session
        that is not there, :class:`~hudsim.errors.UsageError` for what is no URL.
        """
        address = Address.parse(url) if isinstance(url, str) else url
        address = given_a(Address, address, "url", "ws://host:port/?bearer=… or an Address").at("/control")
        client = cls(address, park_s=park_s, reconnect_s=reconnect_s)
        client.session_id = session_id
        await client._dial(timeout_s)
        return client

    @property
    def environment(self) -> str:
        """The environment's name."""
        return str(self.manifest["env"]["name"])

    @property
    def state(self) -> str:
        """What the session was at, when it was greeted: ``idle``, ``working`` or ``started``."""
        return str(self.manifest["state"])

    async def list_tasks(self) -> list[dict[str, Any]]:
        """The templates: ``id``, ``description``, JSON Schemas ``args``, ``input``, ``returns``."""
        tasks: list[dict[str, Any]] = (await self._call("tasks.list"))["tasks"]
        return tasks

    async def start(self, task_id: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
        """Start a task; ``{"prompt", "bindings", …}``. Raises what the template raised, typed."""
        started: dict[str, Any] = await self._call("tasks.start", id=task_id, args=args or {}, key=next(self._keys))
        self._learn(started)
        return started

    async def grade(self, answer: Any = None) -> dict[str, Any]:
        """Grade it: the frame of an :class:`~hudsim.graders.EvaluationResult`."""
        frame: dict[str, Any] = await self._call("tasks.grade", answer=answer, key=next(self._keys))
        return frame

    async def cancel(self) -> bool:
        """End the task ungraded; whether there was one."""
        return bool((await self._call("tasks.cancel"))["cancelled"])

    async def current(self) -> dict[str, Any]:
        """The task that the session has started: its ``id``, ``args``, and what :meth:`start` gave.

        Raises :class:`~hudsim.errors.NoTask` if there is none to be worked on.
        """
        current: dict[str, Any] = await self._call("tasks.current")
        self._learn(current)
        return current

    async def sessions(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """All sessions of the environment, this one too (None), or that one: ``session``, ``state``, ``connected``,
        ``ends_in_s`` and ``task``: None, or its ``id``, ``args``, ``seconds``, ``waits_for``.
        """
        sessions: list[dict[str, Any]] = (await self._call("sessions.list", session_id=session_id))["sessions"]
        return sessions

    async def cancel_session(self, session_id: str) -> bool:
        """End another session, whoever has it, and its task ungraded; whether there was one.

        Raises :class:`~hudsim.errors.TaskError` for a session that is not there.
        """
        return bool((await self._call("sessions.cancel", session_id=session_id))["cancelled"])

    async def reference(self) -> Any:
        """What the task's author would answer or do. Raises :class:`~hudsim.errors.TaskError` if it is kept back."""
        return (await self._call("tasks.reference"))["reference"]

    async def reach(self, capability: Capability, *, direct: bool | None = None) -> Capability:
        """``capability`` with a URL that can be dialled from here.

        direct
            Dial what serves it, rather than through the environment's own port. None: if it is on this host.

        Raises :class:`~hudsim.errors.UnknownName` for one that the environment does not serve.
        """
        if self.manifest["same_host"] if direct is None else direct:
            return capability
        if capability.name not in self._passes:
            raise UnknownName("capability", capability.name, self._passes)
        address = replace(self._address.at(path_of(capability)), bearer=self._passes[capability.name])
        if capability.protocol in PROTOCOLS:
            return replace(capability, url=address.url)
        forwarder = self._forwarders.get(capability.name)
        if forwarder is None:
            forwarder = self._forwarders[capability.name] = Forwarder(address, capability.name)
        host, port = await forwarder.start()
        return capability.moved(host, port)

    async def close(self) -> None:
        """Say goodbye, which ends the session, and hang up. Idempotent."""
        if self._rpc is not None:
            with contextlib.suppress(HudsimError, TimeoutError):
                await self._rpc.call("bye", timeout_s=_GOODBYE_S)
        await self.drop()

    async def drop(self) -> None:
        """Hang up without a goodbye: the session is parked. Idempotent."""
        forwarders, self._forwarders = self._forwarders, {}
        for forwarder in forwarders.values():
            await forwarder.stop()
        rpc, self._rpc = self._rpc, None
        if rpc is not None:
            await rpc.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    # The link -----------------------------------------------------------------------------------------------------

    async def _dial(self, timeout_s: float) -> None:
        rpc = RpcClient(await connect(self._address, timeout_s=timeout_s))
        try:
            manifest = await rpc.call(
                "hello", timeout_s=_ANSWER_S, session_id=self.session_id, park_s=self._park_s, host=host_id()
            )
            self._check(manifest)
            self._learn(manifest)
        except TimeoutError:
            await rpc.close()
            raise ConnectError(f"{self._address.netloc} said nothing within {_ANSWER_S:g} s") from None
        except BaseException:
            await rpc.close()
            raise
        self._rpc, self.manifest, self.session_id = rpc, manifest, manifest["session_id"]
        self._since_s = time.monotonic()

    def _check(self, manifest: dict[str, Any]) -> None:
        if manifest.get("protocol") != PROTOCOL:
            got = manifest.get("protocol")
            raise UsageError(f"{self._address.netloc} speaks {got!r}, expected {PROTOCOL}: is it an environment?")

    def _learn(self, frame: dict[str, Any]) -> None:
        """Take out of a reply what there is, and the passes for it."""
        passes, manifests = frame.pop("passes", None), frame.pop("capabilities", None)
        if not isinstance(passes, dict) or not isinstance(manifests, list):
            raise WireError(f"{self._address.netloc}: got {sorted(frame)}, expected capabilities and passes besides")
        self._passes = passes
        self.capabilities = {c.name: c for c in map(Capability.from_manifest, manifests)}

    async def _call(self, method: str, **params: Any) -> Any:
        deadline_s, resumes = 0.0, 0
        while True:
            rpc, since_s = self._rpc, self._since_s
            if rpc is None:
                raise LinkLost(f"{self._address.netloc}: the connection was closed")
            try:
                return await rpc.call(method, **params)
            except LinkLost as lost:
                if lost is not rpc.lost:
                    raise  # not our link, but one of the environment's
                now_s = time.monotonic()
                if not resumes or now_s - since_s > _HELD_S:
                    deadline_s, resumes = now_s + self._reconnect_s, 0
                elif resumes == _MOST_RESUMES or now_s > deadline_s:
                    raise  # it can be dialled, and does not hold
                else:
                    await asyncio.sleep(min(_LONGEST_PAUSE_S, 0.05 * 2**resumes))
                resumes += 1
                await self._resume(rpc, lost, deadline_s)

    async def _resume(self, broken: RpcClient, lost: LinkLost, deadline_s: float) -> None:
        """Dial again, unless another call has; raises ``lost`` once it is no use."""
        async with self._dialling:
            if self._rpc is not broken:
                return
            await broken.close()
            began_s, pause_s = time.monotonic(), 0.05
            while True:
                try:
                    await self._dial(max(0.1, deadline_s - time.monotonic()))
                except (ConnectError, LinkLost) as refused:
                    gave_up_s = deadline_s if "refused" not in refused.message else min(deadline_s, began_s + 2.0)
                    if time.monotonic() + pause_s > gave_up_s:
                        raise lost from None
                except TaskError as gone:
                    raise LinkLost(f"{lost.message}; it cannot be resumed: {gone.message}") from None
                else:
                    self.resumes += 1
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
