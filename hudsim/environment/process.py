"""The environment process: ``python -m hudsim.environment.process`` serves what the parent orders, and ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from hudsim.environment.environment import Environment
from hudsim.environment.load import load_environment
from hudsim.environment.server import EnvironmentServer
from hudsim.errors import EnvironmentFailed, HudsimError
from hudsim.loop import run
from hudsim.loop.child import Parent

__all__ = ["main"]

_GRACE_S = 1.7


def main() -> None:
    """Serve until told to stop, or until the parent is gone; the ``shutdown`` hooks run in either case.

    The order: ``source`` and ``env`` as :func:`~hudsim.environment.load_environment` takes them, ``settings``,
    ``bearer``, ``reveal``. The announcement: ``url``, ``slots``.
    """
    parent = Parent.read(signal.SIGTERM)
    with contextlib.suppress(KeyboardInterrupt):
        run(_serve(parent))


async def _serve(parent: Parent) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def parent_is_gone() -> None:
        """On a thread of its own: the loop may be blocked."""
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        timer = threading.Timer(_GRACE_S, os._exit, (1,))
        timer.daemon = True
        timer.start()

    parent.when_gone(parent_is_gone)
    try:
        server = await _started(parent.order)
    except Exception as error:
        parent.announce_failure(error, otherwise=EnvironmentFailed)
        if not isinstance(error, HudsimError):
            raise
        sys.exit(1)
    parent.announce({"url": server.address.url, "slots": server.environment.slots})
    try:
        await stop.wait()
    finally:
        await _stopped(server)


async def _stopped(server: EnvironmentServer) -> None:
    """Stop it whole: the parent closes the lifeline and sends SIGTERM, and the second must not cut the first short."""
    stopping = asyncio.create_task(server.stop())
    while not stopping.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(stopping)


async def _started(order: dict[str, Any]) -> EnvironmentServer:
    environment = _loaded(Path(order["source"]), order["env"])
    environment.configure(**order["settings"])
    server = EnvironmentServer(environment, bearer=order["bearer"], reveal=order["reveal"])
    await server.start()
    return server


def _loaded(source: Path, name: str) -> Environment:
    """From its own folder, so that what it names by a relative path is beside it."""
    os.chdir(source if source.is_dir() else source.parent)
    return load_environment(source, name=name)


if __name__ == "__main__":
    main()
