"""``RemoteWorld``: a world that somebody else serves, attached to by its URL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudsim.bridge import Episode
from hudsim.capability import Capability
from hudsim.errors import ConnectError, EpisodeError, UnknownName, UsageError
from hudsim.net import Address, RpcClient, connect

__all__ = ["RemoteWorld"]

_ANSWER_S = 10.0


class RemoteWorld:
    """Drives the ``/control`` of a running server. Stopping it leaves the server running."""

    def __init__(self, url: str) -> None:
        self._address = Address.parse(url)
        self._played = self._address
        self._rpc: RpcClient | None = None
        self._capability: Capability | None = None

    async def start(self) -> None:
        """Dial it. Idempotent. Raises :class:`~hudsim.errors.ConnectError` and its siblings."""
        if self._rpc is not None:
            return
        rpc = RpcClient(await connect(self._address.at("/control")))
        try:
            manifest = await rpc.call("capability", timeout_s=_ANSWER_S)
        except UnknownName:
            await rpc.close()
            raise UsageError(
                f"{self._address.netloc} serves an environment, not a world alone: `hudsim eval SOURCE AGENT --runtime "
                "ws://…` drives its tasks"
            ) from None
        except TimeoutError:
            await rpc.close()
            raise ConnectError(f"{self._address.netloc} said nothing within {_ANSWER_S:g} s; is it hudsim?") from None
        except BaseException:
            await rpc.close()
            raise
        self._rpc = rpc
        served = Capability.from_manifest(manifest)
        # The server knows the address that it bound, which may not be how one reaches it from here.
        there = Address.parse(served.url)
        self._played = self._address.at(there.path)
        url = replace(self._played, bearer=there.bearer or self._address.bearer).url
        self._capability = Capability(served.name, served.protocol, url, served.params)

    async def stop(self) -> None:
        """Hang up. Idempotent."""
        rpc, self._rpc = self._rpc, None
        if rpc is not None:
            await rpc.close()

    @property
    def address(self) -> Address:
        """Where it is served, with the token that it was attached with."""
        return self._played

    def capability(self) -> Capability:
        """Where agents connect."""
        if self._capability is None:
            raise EpisodeError("not connected; start() it first")
        return self._capability

    async def reset(self, seed: int | None, task_args: dict[str, Any]) -> Episode:
        """Start an episode."""
        return Episode(**await self._dialled().call("reset", seed=seed, args=task_args))

    async def result(self, token: str | None) -> dict[str, Any]:
        """The episode's record."""
        record: dict[str, Any] = await self._dialled().call("result", token=token)
        return record

    def _dialled(self) -> RpcClient:
        if self._rpc is None:
            raise EpisodeError("not connected; start() it first")
        return self._rpc
