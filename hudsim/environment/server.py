"""``EnvironmentServer``: an environment on one port: control, tunnels and relays."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

from hudsim.capability import Capability
from hudsim.environment.control import Control
from hudsim.environment.environment import Environment
from hudsim.environment.relay import relay
from hudsim.environment.tunnel import tunnel
from hudsim.net import QUEUE, Address, Link, Server
from hudsim.wire.session import PROTOCOLS

__all__ = ["EnvironmentServer", "serve"]


class EnvironmentServer:
    """Serves ``environment``: ``/control``, ``/robot/<name>``, ``/tunnel/<name>``, ``GET /healthz`` and ``/metrics``.

    bearer
        The token that admits; "" lets everybody in.
    reveal
        Whether whoever has the token may ask for the tasks' references.
    """

    def __init__(self, environment: Environment, *, bearer: str, reveal: bool = False) -> None:
        self.environment = environment
        self._control = Control(environment, reveal=reveal)
        pages = {"/healthz": self._health, "/metrics": self._metrics}
        self._running = False
        self._net = Server({"/control": self._serve_control}, bearer=bearer, pages=pages, max_queue=QUEUE)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Start the environment, then serve it. Raises what its start raises, or what keeps the port from it."""
        await self.environment.start()
        try:
            self._publish()
            address = await self._net.start(host, port)
        except BaseException:
            await self.environment.stop()
            raise
        self._running = True
        return address

    async def stop(self) -> None:
        """Cancel what is under way, close the port, stop the environment. Idempotent."""
        if not self._running:
            return
        self._running = False
        await self._control.stop()
        await self._net.stop()
        await self.environment.stop()

    @property
    def address(self) -> Address:
        """Where it listens. Only after :meth:`start`."""
        return self._net.address

    def _publish(self) -> None:
        """One path a capability; which there are may change while the environment runs."""
        routes: dict[str, Any] = {"/control": self._serve_control}
        for capability in self.environment.capabilities:
            kind, serve_one = ("robot", self._relay) if capability.protocol in PROTOCOLS else ("tunnel", self._tunnel)
            routes[f"/{kind}/{capability.name}"] = partial(serve_one, capability.name)
        self._net.routes = routes

    async def _serve_control(self, link: Link) -> None:
        self._publish()
        await self._control.serve(link)

    async def _relay(self, name: str, link: Link) -> None:
        await relay(link, self._now(name).url)

    async def _tunnel(self, name: str, link: Link) -> None:
        await tunnel(link, *self._now(name).endpoint)

    def _now(self, name: str) -> Capability:
        """A world that has been made again is elsewhere than before."""
        return self.environment.capability(name)

    def _health(self) -> tuple[str, str]:
        return "application/json", json.dumps({"status": "ok"})

    def _metrics(self) -> tuple[str, str]:
        control = self._control
        lines = [
            "# TYPE hudsim_sessions gauge",
            f'hudsim_sessions{{state="live"}} {control.live}',
            f'hudsim_sessions{{state="parked"}} {control.parked}',
            "# TYPE hudsim_tasks_started_total counter",
            f"hudsim_tasks_started_total {control.started}",
            "# TYPE hudsim_tasks_graded_total counter",
            f"hudsim_tasks_graded_total {control.graded}",
        ]
        return "text/plain; version=0.0.4", "\n".join(lines) + "\n"


async def serve(
    environment: Environment, host: str = "127.0.0.1", port: int = 0, *, bearer: str, reveal: bool = False
) -> None:
    """Serve ``environment`` until cancelled; whatever ends it, everything is taken down."""
    server = EnvironmentServer(environment, bearer=bearer, reveal=reveal)
    await server.start(host, port)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await server.stop()
