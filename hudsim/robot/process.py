"""The sim process: ``python -m hudsim.robot.process``, or a program of one's own that ends in :func:`serve_bridge`.

Its main thread is the sim thread; the server runs on a loop thread. It ends when its parent does: the kernel
kills it (Linux), and the pipe on its stdin, which the parent holds open, closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudsim.errors import HudsimError, SimFailed
from hudsim.loop import Pulse, SimThread
from hudsim.loop.child import SPAWNED, Parent
from hudsim.loop.run import new_event_loop, own_process
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.server import RobotServer
from hudsim.robot.spec import Serving, WorldSpec
from hudsim.robot.world import make_world

__all__ = ["EXIT_HUNG", "main", "serve_bridge"]

EXIT_HUNG = 71
"""The exit code of a sim process whose own watchdog found that the bridge hangs."""

_GRACE_S = 1.5


def main() -> None:
    """The world that the parent orders, made on this thread, served from another."""
    order = _Order.of(Parent.read())
    _serve(WorldSpec(**order.spec).factory, order)


def serve_bridge(bridge: RobotBridge, *, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve ``bridge`` until told to stop: the last call of a simulator's own program.

    The calling thread, the main one, becomes the sim thread. Started by hand, the program prints a JSON line with
    its ``url`` and ``port``, and each claim starts an episode. Started by ``RobotEndpoint.spawn([…])`` it is that
    endpoint's world: for simulators that need an interpreter of their own.
    """
    if SPAWNED in os.environ:
        order = _Order.of(Parent.read())
    else:
        order = _Order({}, Serving(host=host, port=port, autostart=True).with_bearer(), Pulse(), Parent.shell())
    _serve(lambda: lambda: bridge, order)


@dataclass
class _Order:
    """What to serve and how, and who is to be told of it."""

    spec: dict[str, Any]
    serving: Serving
    pulse: Pulse
    parent: Parent

    @classmethod
    def of(cls, parent: Parent) -> _Order:
        said = parent.order
        return cls(said["spec"], Serving(**said["serving"]), Pulse.shared(said["pulse_fd"]), parent)

    def tell(self, server: RobotServer) -> None:
        """The world is up."""
        by_hand = {"url": server.address.url, "port": server.address.port}
        self.parent.announce(by_hand if self.parent.is_shell else {"capability": server.capability().to_manifest()})

    def tell_failure(self, error: Exception) -> None:
        """It will not come up."""
        self.parent.announce_failure(error, otherwise=SimFailed)


def _serve(find: Callable[[], Callable[..., RobotBridge]], order: _Order) -> None:
    """``find`` gives what makes the bridge."""
    own_process()
    sim = SimThread(pulse=order.pulse)
    how = order.serving
    try:
        world = make_world(find(), num_envs=how.num_envs, adjust=how.adjust)
        server = RobotServer.of(world, sim, how, task_args=order.spec.get("task_args", {}))
    except Exception as error:
        order.tell_failure(error)
        if not isinstance(error, HudsimError):
            raise
        sys.exit(1)
    loop = _LoopThread(server, sim, order)
    loop.listen_to_signals()
    thread = threading.Thread(target=loop.run, name="hudsim-loop", daemon=True)
    thread.start()
    gc.collect()
    gc.freeze()  # what the world loaded stays for good; no tick need pay for looking at it again
    sim.run()
    thread.join(_GRACE_S)


class _LoopThread:
    """Serves the world until asked to stop, then lets the sim thread go."""

    def __init__(self, server: RobotServer, sim: SimThread, order: _Order) -> None:
        self._server, self._sim, self._order = server, sim, order
        self._loop = new_event_loop()
        self._stop = asyncio.Event()

    def listen_to_signals(self) -> None:
        """On the main thread. A signal wakes the *loop* thread: the main one may sleep in a lock, and a Python
        handler that came a moment before it fell asleep would wait there with it.
        """
        self._signals, wake = socket.socketpair()
        self._wake = wake
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def ask_to_stop(self) -> None:
        """On the loop thread or another. If the sim thread does not come to an end, the process does."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        timer = threading.Timer(_GRACE_S, os._exit, (1,))
        timer.daemon = True
        timer.start()

    def run(self) -> None:
        """The thread."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except HudsimError as error:
            self._order.tell_failure(error)
        finally:
            self._sim.stop()

    async def _main(self) -> None:
        self._order.parent.when_gone(self.ask_to_stop)
        self._loop.add_reader(self._signals.fileno(), self._on_signal)
        server, how = self._server, self._order.serving
        await server.start(how.host, how.port)
        self._order.tell(server)
        stopped = asyncio.ensure_future(self._stop.wait())
        hung = asyncio.ensure_future(server.hung.wait())
        await asyncio.wait({stopped, hung}, return_when=asyncio.FIRST_COMPLETED)
        if server.hung.is_set():
            await asyncio.sleep(0.2)  # the agents are told first
            os._exit(EXIT_HUNG)
        hung.cancel()
        await server.stop()

    def _on_signal(self) -> None:
        self._loop.remove_reader(self._signals.fileno())
        self.ask_to_stop()


if __name__ == "__main__":
    main()
