"""The sim process: ``python -m hudsim.robot.process``, or a program of one's own that ends in :func:`serve_bridge`.

Its main thread is the sim thread; the server runs on a loop thread. It ends when its parent does: the kernel
kills it (Linux), and the pipe on its stdin, which the parent holds open, closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudsim.bridge import Capability
from hudsim.errors import HudsimError, SimFailed
from hudsim.loop import Pulse, SimThread
from hudsim.loop.run import new_event_loop, own_process
from hudsim.net import Address
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.server import RobotServer
from hudsim.robot.spec import Serving, WorldSpec
from hudsim.robot.world import make_world

__all__ = ["EXIT_HUNG", "SPAWNED", "main", "serve_bridge"]

EXIT_HUNG = 71
"""The exit code of a sim process whose own watchdog found that the bridge hangs."""

SPAWNED = "HUDSIMSPAWNED"
"""Set in the environment of a process that a SpawnedWorld starts."""

_PR_SET_PDEATHSIG = 1
_GRACE_S = 1.5


def main() -> None:
    """The world that the parent orders, made on this thread, served from another."""
    order = _Order.read()
    _serve(WorldSpec(**order.spec).factory, order)


def serve_bridge(bridge: RobotBridge, *, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve ``bridge`` until told to stop: the last call of a simulator's own program.

    The calling thread, the main one, becomes the sim thread. Started by hand, the program prints a JSON line with
    its ``url`` and ``port``, and each claim starts an episode. Started by ``RobotEndpoint.spawn([…])`` it is that
    endpoint's world: for simulators that need an interpreter of their own.
    """
    if SPAWNED in os.environ:
        order = _Order.read()
    else:
        order = _Order.by_hand(Serving(host=host, port=port, autostart=True).with_bearer())
    _serve(lambda: lambda: bridge, order)


@dataclass
class _Order:
    """What to serve and how, and who is to be told of it."""

    spec: dict[str, Any]
    serving: Serving
    pulse: Pulse
    announce: Any
    parent: int | None
    lifeline: Any = None

    @classmethod
    def read(cls) -> _Order:
        """The parent's, from stdin, whose end it holds open as long as it lives."""
        os.environ.pop(SPAWNED, None)  # it is not our children's
        order = json.loads(sys.stdin.readline())
        pulse = Pulse.shared(order["pulse_fd"])
        announce = os.fdopen(order["announce_fd"], "w")
        # Kept apart: a simulator may replace sys.stdin.
        return cls(order["spec"], Serving(**order["serving"]), pulse, announce, int(order["parent"]), sys.stdin)

    @classmethod
    def by_hand(cls, serving: Serving) -> _Order:
        """Nobody's: the shell's."""
        return cls({}, serving, Pulse(), sys.stdout, None)

    def tell(self, capability: Capability) -> None:
        """The world is up."""
        by_hand = {"url": capability.url, "port": Address.parse(capability.url).port}
        self._say(by_hand if self.parent is None else {"capability": capability.to_manifest()})

    def tell_failure(self, error: Exception) -> None:
        """It will not come up."""
        name = error.name if isinstance(error, HudsimError) else SimFailed.name
        message = error.message if isinstance(error, HudsimError) else f"{type(error).__name__}: {error}"
        data = {key: str(value) for key, value in getattr(error, "data", {}).items()}
        self._say({"error": {"name": name, "message": message, "data": data}})

    def _say(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps(message), file=self.announce, flush=True)


def _serve(find: Callable[[], Callable[..., RobotBridge]], order: _Order) -> None:
    """``find`` gives what makes the bridge."""
    if order.parent is not None:
        _die_with(order.parent)
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
        if self._order.parent is not None:
            threading.Thread(target=self._watch_parent, name="hudsim-lifeline", daemon=True).start()
        self._loop.add_reader(self._signals.fileno(), self._on_signal)
        server, how = self._server, self._order.serving
        await server.start(how.host, how.port)
        self._order.tell(server.capability())
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

    def _watch_parent(self) -> None:
        while self._order.lifeline.readline():
            pass
        self.ask_to_stop()


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the parent's thread that started it ends."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


if __name__ == "__main__":
    main()
