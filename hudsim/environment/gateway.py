"""``Gateway``: the paths under which a served environment's capabilities are reached, and the passes for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hudsim.capability import Capability
from hudsim.environment.environment import Environment
from hudsim.environment.relay import relay
from hudsim.environment.tunnel import tunnel
from hudsim.net import Handler, Link, Server
from hudsim.wire.session import PROTOCOLS

__all__ = ["Gateway", "path_of"]


def path_of(capability: Capability) -> str:
    """Where on an environment's own port it is reached: a relay for a robot, a tunnel for anything else."""
    return f"/{'robot' if capability.protocol in PROTOCOLS else 'tunnel'}/{capability.name}"


class Gateway:
    """Passes are tokens that open one path each. A session's agent needs them, and they end with the session.

    own
        What the server serves besides.
    """

    def __init__(self, environment: Environment, net: Server, own: Mapping[str, Handler]) -> None:
        self._environment, self._net, self._own = environment, net, own
        self._passes: dict[str, dict[str, str]] = {}  # by session and path

    def publish(self) -> None:
        """Serve what there is now; it may change while the environment runs."""
        served = {path_of(capability): self._handler(capability) for capability in self._environment.capabilities}
        self._net.routes = {**self._own, **served}

    def admit(self, session_id: str) -> dict[str, str]:
        """For each capability that there is now the session's pass, by the capability's name."""
        self.publish()
        passes = self._passes.setdefault(session_id, {})
        paths = {capability.name: path_of(capability) for capability in self._environment.capabilities}
        for path in paths.values():
            if path not in passes:
                passes[path] = self._net.admit(path)
        return {name: passes[path] for name, path in paths.items()}

    def dismiss(self, session_id: str) -> None:
        """The session has ended: its passes open nothing, and what came in with them is cut. Idempotent."""
        for path, token in self._passes.pop(session_id, {}).items():
            self._net.dismiss(path, token)

    def _handler(self, capability: Capability) -> Handler:
        return partial(self._relay if capability.protocol in PROTOCOLS else self._tunnel, capability.name)

    async def _relay(self, name: str, link: Link) -> None:
        await relay(link, self._now(name).url)

    async def _tunnel(self, name: str, link: Link) -> None:
        await tunnel(link, *self._now(name).endpoint)

    def _now(self, name: str) -> Capability:
        """A world that has been made again is elsewhere than before."""
        return self._environment.capability(name)
