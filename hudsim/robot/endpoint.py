"""``RobotEndpoint``: an environment's handle on a robot world, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from hudsim.bridge import Bridge, Episode
from hudsim.capability import Capability
from hudsim.errors import UsageError
from hudsim.net import Address
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.inline import InlineWorld
from hudsim.robot.remote import RemoteWorld
from hudsim.robot.spawned import SpawnedWorld
from hudsim.robot.spec import Serving, WorldSpec

__all__ = ["RobotEndpoint"]


class RunningWorld(Protocol):
    """What spawned, inline and remote worlds have in common."""

    async def start(self) -> None:
        """Bring it up. Idempotent."""
        ...

    async def stop(self) -> None:
        """Take it down. Idempotent."""
        ...

    @property
    def address(self) -> Address:
        """The same place with the token that opens the whole server."""
        ...

    def capability(self) -> Capability:
        """Where agents connect."""
        ...

    async def reset(self, seed: int | None, task_args: dict[str, Any]) -> Episode:
        """Start an episode."""
        ...

    async def result(self, token: str | None) -> dict[str, Any]:
        """The episode's record; frees its slot."""
        ...


class RobotEndpoint(Bridge):
    """A robot world as a :class:`~hudsim.bridge.Bridge`.

    ::

        async with RobotEndpoint(ArmBridge, task="lift") as world:       # in a process of its own
            episode = await world.reset(seed=3)
            ...                                                          # an agent plays world.capability()
            record = await world.result(episode.token)

    ``RobotEndpoint(Class, **args)`` and ``RobotEndpoint(instance)`` make the bridge again in a process of its
    own; :meth:`inline` serves a live object in this one; :meth:`remote` attaches to a server that runs already.
    Options (``num_envs, mode, rate_hz, watchdog_s, …``) are those of :class:`~hudsim.robot.spec.Serving`.
    """

    def __init__(
        self,
        bridge: RobotBridge | type[RobotBridge] | None = None,
        *,
        serving: Serving | None = None,
        world: RunningWorld | None = None,
        **args: Any,
    ) -> None:
        if (bridge is None) == (world is None):
            raise UsageError("RobotEndpoint: got neither or both of a bridge and a world, expected one")
        how = serving or Serving()
        self._world = world or SpawnedWorld(WorldSpec.of(bridge, args), how)  # type: ignore[arg-type]
        self._slots = None if bridge is None else how.slots(bridge, args)

    @classmethod
    def spawn(cls, spec: WorldSpec | str | Sequence[str], *, start_timeout_s: float = 120.0, **serving: Any) -> Self:
        """In a process of its own, which dies with this one; made again if it dies before.

        ``spec`` may be a target, ``module:attr`` or ``file.py:attr``, or a command: a program that ends in
        :func:`~hudsim.robot.process.serve_bridge`, under an interpreter of its own.
        """
        made, how = WorldSpec(spec) if isinstance(spec, str) else spec, Serving(**serving)
        endpoint = cls(world=SpawnedWorld(made, how, start_timeout_s=start_timeout_s))
        endpoint._slots = how.slots(None, made.args if isinstance(made, WorldSpec) else {})
        return endpoint

    @classmethod
    def inline(cls, bridge: RobotBridge | WorldSpec, **serving: Any) -> Self:
        """In this process, on a thread of its own; the only form for a live object."""
        how = Serving(**serving)
        if isinstance(bridge, WorldSpec):
            endpoint = cls(world=InlineWorld(bridge.factory(), how, bridge.task_args))
            endpoint._slots = how.slots(None, bridge.args)
        else:
            endpoint = cls(world=InlineWorld(lambda: bridge, how))
            endpoint._slots = how.slots(bridge, {})
        return endpoint

    @classmethod
    def remote(cls, url: str, port: int | None = None, *, bearer: str | None = None) -> Self:
        """Attached to a server that runs already: its URL (see :attr:`address`), or host and port."""
        address = Address.parse(url) if port is None else Address(url, port, bearer=bearer)
        return cls(world=RemoteWorld(address.url))

    @property
    def slots(self) -> int | None:
        """How many episodes it can hold at once. None: only the server that runs already knows."""
        return self._slots

    async def start(self) -> None:
        await self._world.start()

    async def stop(self) -> None:
        await self._world.stop()

    @property
    def address(self) -> Address:
        """Where the world is played, with the token that starts and grades episodes too: for whoever runs it, and
        for :meth:`remote`; never for an agent. After :meth:`start`.
        """
        return self._world.address

    def capability(self, name: str = "robot") -> Capability:
        """How an agent reaches the world, to play it and nothing else; ``name`` renames it, not its path."""
        served = self._world.capability()
        return Capability(name, served.protocol, served.url, served.params)

    async def reset(self, *, seed: int | None = None, **task_args: Any) -> Episode:
        """Start an episode; its first observation is a function of ``seed`` and ``task_args`` alone."""
        return await self._world.reset(seed, task_args)

    async def result(self, token: str | None = None) -> dict[str, Any]:
        """The episode's record (``end, is_error, ticks, total_reward, success, score, cadence, …``); frees its slot."""
        return await self._world.result(token)

    async def wait(self) -> Exception:
        """Until a spawned world has died by itself; why."""
        if not isinstance(self._world, SpawnedWorld):
            raise UsageError("only a spawned world can be waited for")
        return await self._world.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()
