"""``EnvironmentServer``: an environment on one port: control, tunnels and relays."""

from __future__ import annotations

import asyncio
import contextlib
import json

from hudsim.environment.control import Control
from hudsim.environment.environment import Environment
from hudsim.environment.gateway import Gateway
from hudsim.net import QUEUE, Address, Link, Server

__all__ = ["EnvironmentServer", "serve"]


class EnvironmentServer:
    """Serves ``environment``: ``/control``, ``/robot/<name>``, ``/tunnel/<name>``, ``GET /healthz`` and ``/metrics``.

    bearer
        The token that admits to everything; "" lets everybody in. Whoever has it may start and grade tasks: an agent
        is given its session's passes instead, each for one capability.
    reveal
        Whether whoever has the token may ask for the tasks' references.
    """

    def __init__(self, environment: Environment, *, bearer: str, reveal: bool = False) -> None:
        self.environment = environment
        self._reveal = reveal
        pages = {"/healthz": self._health, "/metrics": self._metrics}
        self._running = False
        own = {"/control": self._serve_control}
        self._net = Server(own, bearer=bearer, pages=pages, max_queue=QUEUE)
        self._gateway = Gateway(environment, self._net, own)
        self._control = Control(environment, self._gateway, reveal=reveal)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Start the environment, then serve it. Raises what its start raises, or what keeps the port from it."""
        await self.environment.start()
        self._control = Control(self.environment, self._gateway, reveal=self._reveal)
        try:
            self._gateway.publish()
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
        async with contextlib.AsyncExitStack() as down:  # each, whatever becomes of the others
            down.push_async_callback(self.environment.stop)
            down.push_async_callback(self._net.stop)
            await self._control.stop()

    @property
    def address(self) -> Address:
        """Where it listens. Only after :meth:`start`."""
        return self._net.address

    async def _serve_control(self, link: Link) -> None:
        await self._control.serve(link)

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
