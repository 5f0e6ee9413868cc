"""The sim process: ``python -m hudsim.robot.process``, started by :class:`~hudsim.robot.spawned.SpawnedWorld`.

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
import sys
import threading
from collections.abc import Mapping
from typing import Any

from hudsim.errors import HudsimError
from hudsim.loop import Pulse, SimThread
from hudsim.loop.run import new_event_loop, own_process
from hudsim.robot.server import RobotServer
from hudsim.robot.spec import Serving, WorldSpec
from hudsim.robot.world import World, make_world

__all__ = ["EXIT_HUNG", "main"]

EXIT_HUNG = 71
"""The exit code of a sim process whose own watchdog found that the bridge hangs."""

_PR_SET_PDEATHSIG = 1
_GRACE_S = 1.5


def main() -> None:
    """Make the world on this thread, serve it from another, be the sim thread until told to stop."""
    order = json.loads(sys.stdin.readline())
    _die_with(int(order["parent"]))
    own_process()
    announce = os.fdopen(order["announce_fd"], "w")
    sim = SimThread(pulse=Pulse.shared(order["pulse_fd"]))
    spec, serving = WorldSpec(**order["spec"]), Serving(**order["serving"])
    try:
        world = make_world(spec.factory(), num_envs=serving.num_envs, adjust=serving.adjust)
        serve = _Serve(world, sim, spec, serving)
    except HudsimError as error:
        _tell(announce, {"error": {"name": error.name, "message": error.message, "data": _strings(error.data)}})
        sys.exit(1)
    signal.signal(signal.SIGTERM, lambda *_: serve.ask_to_stop())
    signal.signal(signal.SIGINT, lambda *_: serve.ask_to_stop())
    thread = threading.Thread(target=serve.run, args=(announce,), name="hudsim-loop", daemon=True)
    thread.start()
    gc.collect()
    gc.freeze()  # what the world loaded stays for good; no tick need pay for looking at it again
    sim.run()
    thread.join(_GRACE_S)


class _Serve:
    """The loop thread: serves the world until asked to stop, then lets the sim thread go."""

    def __init__(self, world: World, sim: SimThread, spec: WorldSpec, serving: Serving) -> None:
        self._server = RobotServer.of(world, sim, serving, task_args=spec.task_args)
        self._serving = serving
        self._sim = sim
        self._loop = new_event_loop()
        self._stop = asyncio.Event()

    def ask_to_stop(self) -> None:
        """From any thread or signal handler. If the sim thread does not come to an end, the process does."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        timer = threading.Timer(_GRACE_S, os._exit, (1,))
        timer.daemon = True
        timer.start()

    def run(self, announce: Any) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main(announce))
        except HudsimError as error:
            _tell(announce, {"error": {"name": error.name, "message": error.message, "data": {}}})
        finally:
            self._sim.stop()

    async def _main(self, announce: Any) -> None:
        threading.Thread(target=self._watch_parent, name="hudsim-lifeline", daemon=True).start()
        server, how = self._server, self._serving
        await server.start(how.host, how.port)
        _tell(announce, {"capability": server.capability().to_manifest()})
        stopped = asyncio.ensure_future(self._stop.wait())
        hung = asyncio.ensure_future(server.hung.wait())
        await asyncio.wait({stopped, hung}, return_when=asyncio.FIRST_COMPLETED)
        if server.hung.is_set():
            await asyncio.sleep(0.2)  # the agents are told first
            os._exit(EXIT_HUNG)
        hung.cancel()
        await server.stop()

    def _watch_parent(self) -> None:
        while sys.stdin.readline():
            pass
        self.ask_to_stop()


def _tell(announce: Any, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):
        print(json.dumps(message), file=announce, flush=True)


def _strings(data: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in data.items()}


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the parent's thread that started it ends."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


if __name__ == "__main__":
    main()
