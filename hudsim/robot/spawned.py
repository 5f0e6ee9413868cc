"""``SpawnedWorld``: a world in a process of its own, watched from outside its GIL, made again if it dies."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from hudsim.bridge import Capability, Episode
from hudsim.errors import EpisodeError, HudsimError, LinkLost, SimFailed, SimHung, UsageError, from_wire
from hudsim.loop import Pulse, Worker
from hudsim.net import Address, RpcClient, connect
from hudsim.robot.ending import End
from hudsim.robot.play import lost_record
from hudsim.robot.process import EXIT_HUNG, SPAWNED
from hudsim.robot.spec import Serving, WorldSpec

__all__ = ["SpawnedWorld"]

log = logging.getLogger(__name__)

_MODULE = [sys.executable, "-m", "hudsim.robot.process"]
_STOP_S = 1.8
_TELL_S = 5.0


class SpawnedWorld:
    """Owns one sim process. When it dies or hangs, what waits ends typed, and the next ``reset`` makes a new one.

    ``spec`` may be a command instead: a program that ends in :func:`~hudsim.robot.process.serve_bridge`.
    ``start_timeout_s`` bounds how long the world may take to come up.
    """

    def __init__(self, spec: WorldSpec | Sequence[str], serving: Serving, *, start_timeout_s: float = 120.0) -> None:
        self._command = _MODULE if isinstance(spec, WorldSpec) else list(spec)
        self._ordered = dataclasses.asdict(spec) if isinstance(spec, WorldSpec) else {}
        self._serving = serving.with_bearer()
        self._start_timeout_s = start_timeout_s
        self._process: _Process | None = None
        self._rpc: RpcClient | None = None
        self._capability: Capability | None = None
        self._held: dict[str, Episode] = {}
        self._stopped = True  # until start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._used = False  # the process has given an episode
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the process, if there is none that lives. Raises what the world raised while it was made."""
        self._stopped = False
        await self._revive()

    async def _revive(self) -> None:
        """Have a process that lives. Raises :class:`~hudsim.errors.EpisodeError` after :meth:`stop`."""
        if self._loop not in (None, asyncio.get_running_loop()):
            raise UsageError("this world was started on another event loop; start, use and stop it on one")
        self._loop = asyncio.get_running_loop()
        async with self._starting:
            if self._stopped:
                raise EpisodeError("the world is not running; start() it first")
            if self._process is not None and self._process.failure is None:
                return
            await self._end()
            process = _Process(self._command, self._serving.watchdog_s)
            order = {"spec": self._ordered, "serving": self._serving.to_json()}
            try:
                manifest = await process.start(order, self._start_timeout_s)
                self._capability = Capability.from_manifest(manifest)
                address = Address.parse(self._capability.url).at("/control")
                self._rpc = RpcClient(await connect(address, tls=self._serving.tls_client()))
            except BaseException:
                await process.stop()
                raise
            self._process, self._used = process, False

    async def stop(self) -> None:
        """End the process and wait until it is gone: SIGTERM, then SIGKILL."""
        self._stopped = True
        async with self._starting:
            await self._end()
            self._capability = self._loop = None

    async def wait(self) -> HudsimError:
        """Until the process has died by itself; why."""
        assert self._process is not None
        return await self._process.died()

    def capability(self) -> Capability:
        """Where agents connect. Changes when the process is made again."""
        if self._capability is None:
            raise EpisodeError("the world has no capability before start()")
        return self._capability

    async def reset(self, seed: int | None, task_args: dict[str, Any]) -> Episode:
        """Start an episode; in a new process if the last one died."""
        await self._revive()
        process, began_s = self._process, time.monotonic()
        try:
            got = await self._call("reset", seed=seed, args=task_args)
        except (SimFailed, SimHung) as error:
            # The last episode may have killed it, and the news of that be on its way still.
            assert process is not None
            if isinstance(error, SimHung) and time.monotonic() - began_s < self._serving.watchdog_s:
                await process.unlinked()
            if process.failure is None or not self._used:
                raise
            await self._revive()
            got = await self._call("reset", seed=seed, args=task_args)
        episode = Episode(**got)
        self._held[episode.token], self._used = episode, True
        return episode

    async def result(self, token: str | None) -> dict[str, Any]:
        """The episode's record. If its process is gone, one that says so."""
        if token is None and len(self._held) == 1:
            token = next(iter(self._held))
        process = self._process
        try:
            record: dict[str, Any] = await self._call("result", token=token)
        except EpisodeError as error:
            episode = self._held.pop(token or "", None)
            if episode is None or process is None or (process.failure is None and process is self._process):
                raise
            why = process.failure or error
            return lost_record(
                episode.token, episode.slot, episode.seed, episode.prompt, end=End.of(why), message=why.message
            )
        self._held.pop(token or "", None)
        return record

    async def _call(self, method: str, **params: Any) -> Any:
        process, rpc = self._process, self._rpc
        if process is None or rpc is None:
            raise EpisodeError("the world is not running")
        if process.failure is not None:
            raise process.failure
        try:
            return await rpc.call(method, **params)
        except LinkLost:
            raise await process.unlinked() from None

    async def _end(self) -> None:
        rpc, self._rpc = self._rpc, None
        process, self._process = self._process, None
        ends = [rpc.close()] if rpc is not None else []
        if process is not None:
            ends.append(process.stop())
        await asyncio.gather(*ends)


class _Process:
    """One sim process and what watches it. ``failure`` is why it died, once it has without being asked."""

    def __init__(self, command: list[str], watchdog_s: float) -> None:
        self._command = command
        self.failure: HudsimError | None = None
        self._watchdog_s = watchdog_s
        self._gone = asyncio.Event()
        self._stopping = self._killed_hung = False
        self._last_words: deque[str] = deque(maxlen=20)
        self._popen: subprocess.Popen[str] | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Start it and wait for its capability's manifest."""
        loop = asyncio.get_running_loop()
        pulse_fd = Pulse.create_fd()
        announce_r, announce_w = os.pipe()
        pulse = Pulse.shared(pulse_fd)
        try:
            self._popen = await asyncio.wrap_future(_spawner.submit(_popen, self._command, (announce_w, pulse_fd)))
        finally:
            os.close(announce_w)
            os.close(pulse_fd)
        for target in (self._read_stderr, self._wait):
            threading.Thread(target=target, args=(loop,), name="hudsim-sim-watch", daemon=True).start()
        self._watch = asyncio.create_task(self._watchdog(pulse), name="hudsim-sim-watchdog")
        order |= {"parent": os.getpid(), "announce_fd": announce_w, "pulse_fd": pulse_fd}
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(json.dumps(order) + "\n")
            self._popen.stdin.flush()
        said = await self._announcement(announce_r, timeout_s)
        if (error := said.get("error")) is not None:
            raise from_wire(error["name"], error["message"], error["data"])
        manifest: dict[str, Any] = said["capability"]
        return manifest

    async def _announcement(self, fd: int, timeout_s: float) -> dict[str, Any]:
        reader = asyncio.StreamReader(limit=64 << 20)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb")
        )
        try:
            async with asyncio.timeout(timeout_s):
                line = await reader.readline()
        except TimeoutError:
            raise SimHung(f"the world did not come up within {timeout_s:g} s{self._words()}") from None
        finally:
            transport.close()
        if not line:
            raise await self.unlinked()
        said: dict[str, Any] = json.loads(line)
        return said

    async def died(self) -> HudsimError:
        """Until it has died; why."""
        await self._gone.wait()
        return self.failure or SimFailed("the sim process was stopped")

    async def unlinked(self) -> HudsimError:
        """Why the link to it ended. The kernel tells of its death a moment later, if that is why."""
        try:
            async with asyncio.timeout(_TELL_S):
                return await self.died()
        except TimeoutError:
            return SimFailed("the link to the sim process broke, though the process lives")

    async def stop(self) -> None:
        """Idempotent; afterwards the process is gone."""
        self._stopping = True
        popen = self._popen
        if popen is None:
            return
        if popen.stdin is not None:
            with contextlib.suppress(OSError):
                popen.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            popen.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._gone.wait()
        except TimeoutError:
            popen.kill()
            await self._gone.wait()
        finally:
            if popen.returncode is None:  # cancelled on the way: nothing is left behind
                popen.kill()
            if self._watch is not None:
                self._watch.cancel()

    async def _watchdog(self, pulse: Pulse) -> None:
        """The child looks at itself too, and tells its agents; this one works even while its GIL is held."""
        limit_ns = (self._watchdog_s + 1.0) * 1e9
        while True:
            await asyncio.sleep(0.1)
            since_ns = pulse.busy_since_ns
            if since_ns and time.monotonic_ns() - since_ns > limit_ns and self._popen is not None:
                self._killed_hung = True
                self._popen.kill()
                return

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for its death; then what it has forked dies too, or that would hold its port and its connections."""
        assert self._popen is not None
        pid = self._popen.pid
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its group keeps its number until it is reaped
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        code = self._popen.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._died, code)

    def _died(self, code: int) -> None:
        if not self._stopping:
            self.failure = self._verdict(code)
        if self._watch is not None:
            self._watch.cancel()
        self._gone.set()

    def _verdict(self, code: int) -> HudsimError:
        if code == EXIT_HUNG or self._killed_hung:
            return SimHung(f"the bridge did not return within its watchdog of {self._watchdog_s:g} s{self._words()}")
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return SimFailed(f"the sim process died {how}{self._words()}")

    def _words(self) -> str:
        return f"; its last words: {' | '.join(list(self._last_words)[-3:])}" if self._last_words else ""

    def _read_stderr(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._popen is not None
        assert self._popen.stderr is not None
        with self._popen.stderr as lines:
            for line in lines:
                self._last_words.append(line.rstrip())
                log.info("sim: %s", line.rstrip())


def _popen(command: list[str], fds: tuple[int, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, SPAWNED: "1"},
        stdin=subprocess.PIPE,
        stdout=sys.stderr.fileno() if _has_fileno(sys.stderr) else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches the parent alone, which ends its children in order
    )


def _has_fileno(stream: Any) -> bool:
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


_spawner = Worker("spawner")
"""Starts all children, and lasts: the kernel ends a child when the *thread* that started it ends."""
