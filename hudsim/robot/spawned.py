"""``SpawnedWorld``: a world in a process of its own, watched from outside its GIL, made again if it dies."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from hudsim import spawn
from hudsim.bridge import Episode
from hudsim.capability import Capability
from hudsim.errors import EpisodeError, HudsimError, LinkLost, SimFailed, SimHung, UsageError
from hudsim.loop import Pulse
from hudsim.loop.child import Child
from hudsim.net import Address, RpcClient, connect
from hudsim.robot.ending import End
from hudsim.robot.play import lost_record
from hudsim.robot.process import EXIT_HUNG
from hudsim.robot.spec import Serving, WorldSpec

__all__ = ["SpawnedWorld"]


class SpawnedWorld:
    """Owns one sim process. When it dies or hangs, what waits ends typed, and the next ``reset`` makes a new one.

    ``spec`` may be a command instead: a program that ends in :func:`~hudsim.robot.process.serve_bridge`.
    ``start_timeout_s`` bounds how long the world may take to come up.
    """

    def __init__(self, spec: WorldSpec | Sequence[str], serving: Serving, *, start_timeout_s: float = 120.0) -> None:
        self._command = spawn.command("hudsim.robot.process") if isinstance(spec, WorldSpec) else list(spec)
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
                manifest = await process.come_up(order, self._start_timeout_s)
                self._capability = Capability.from_manifest(manifest)
                control = self.address.at("/control")
                self._rpc = RpcClient(await connect(control, tls=self._serving.tls_client()))
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

    @property
    def address(self) -> Address:
        """Where it is served, with the token that opens the whole server. Changes as :meth:`capability` does."""
        return dataclasses.replace(Address.parse(self.capability().url), bearer=self._serving.bearer or None)

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


class _Process(Child):
    """One sim process, and the watchdog outside its GIL."""

    def __init__(self, command: list[str], watchdog_s: float) -> None:
        super().__init__(command, name="sim", failed=SimFailed)
        self._watchdog_s = watchdog_s
        self._killed_hung = False
        self._watch: asyncio.Task[None] | None = None

    async def come_up(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Start it and wait for its capability's manifest."""
        pulse_fd = Pulse.create_fd()
        try:
            self._watch = asyncio.create_task(self._watchdog(Pulse.shared(pulse_fd)), name="hudsim-sim-watchdog")
            said = await self.start({**order, "pulse_fd": pulse_fd}, pass_fds=[pulse_fd], timeout_s=timeout_s)
        finally:
            os.close(pulse_fd)
        manifest: dict[str, Any] = said["capability"]
        return manifest

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await super().stop()

    def verdict(self, code: int) -> HudsimError:
        if code == EXIT_HUNG or self._killed_hung:
            hung = f"the bridge did not return within its watchdog of {self._watchdog_s:g} s"
            return SimHung(hung + self.last_words)
        return super().verdict(code)

    def late(self, timeout_s: float) -> HudsimError:
        return SimHung(f"the world did not come up within {timeout_s:g} s{self.last_words}")

    async def _watchdog(self, pulse: Pulse) -> None:
        """The child looks at itself too, and tells its agents; this one works even while its GIL is held."""
        limit_ns = (self._watchdog_s + 1.0) * 1e9
        while self.failure is None:
            await asyncio.sleep(0.1)
            since_ns = pulse.busy_since_ns
            if since_ns and time.monotonic_ns() - since_ns > limit_ns:
                self._killed_hung = True
                self.kill()
                return
