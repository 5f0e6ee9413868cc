"""``Workspace``: a directory to work in, reached over SSH, that nothing in it can leave."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hudsim.bridge import Bridge, Episode
from hudsim.capability import Capability
from hudsim.coding.bubblewrap import Bind
from hudsim.coding.card import Card, probe
from hudsim.coding.fixed import FixedRoot
from hudsim.coding.freeze import Frozen
from hudsim.coding.identity import SHELL
from hudsim.coding.limits import Limits
from hudsim.coding.mount import Mount
from hudsim.coding.pasta import Network
from hudsim.coding.process import Completed
from hudsim.coding.room import Room
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.scope import Scope
from hudsim.coding.settings import Isolation, Settings
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.sweep import clean_once
from hudsim.coding.tracking import TrackingServer
from hudsim.errors import EpisodeOver, NoFreeSlot, SandboxError, UsageError

if TYPE_CHECKING:
    from hudsim.coding.box import Box
    from hudsim.coding.ssh import SshServer

__all__ = ["Workspace"]

MIB = 1 << 20
_KEPT, _KEPT_TRACKED = 4 * MIB, 32 * MIB
"""Bytes of a room's texts to compare with; every room that is live has its own."""
_RECORDED_FILES, _RECORDED = 200, 64 << 10
"""Changed files in a run's record, and characters of their diffs."""


class Workspace(Scope, Bridge):
    """A shell and files over SSH. In an environment every run has a room of its own; alone there is one.

    ::

        env = Environment("calc")
        ws = env.workspace("workspace", network=False)

        @env.template()
        async def fix():
            (ws.root / "calc.py").write_text("…")          # this run's own directory
            yield "pytest fails; mend calc.py"
            done = await ws.run("python -m unittest")      # in the sandbox
            yield float(done.code == 0)

    root
        Relative: a name; each run has a fresh, empty directory, which goes with the run. Absolute: that directory,
        for one run at a time, and brought back to what it was between them.
    host, port
        Where its SSH server listens. Workspaces of one host and port (0: any that is free) share one.
    network
        False: none. True: one of its own (by pasta, Debian's ``passt``), from which what this host's default route
        leads to is reached, and no service of the host. ``"host"``: the host's, with all that listens there.
    mounts
        What else of the host it sees: :class:`~hudsim.coding.Mount`.
    env
        Variables for its commands.
    track_files
        Also publish ``filetracking/1``: which files change, and how.
    isolation
        ``"none"``: no sandbox; commands run as this process's user, and see what it sees. Without that, a machine where
        no sandbox can be made is an error, with or without ``require_isolation``.
    guest_path
        Where a sandbox sees the directory.
    user
        The name that commands run under.
    limits
        See :class:`~hudsim.coding.Limits`.

    HUD's other keywords are refused by their names: :class:`~hudsim.errors.UsageError`.
    """

    def __init__(
        self,
        root: str | Path = "workspace",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        network: Network = False,
        allowed_hosts: Collection[str] | None = None,
        mounts: Sequence[Mount] = (),
        env: Mapping[str, str] | None = None,
        ports: Collection[int] = (),
        track_files: bool = False,
        require_isolation: bool = False,
        isolation: Isolation = "bubblewrap",
        guest_path: str = "/workspace",
        user: str = "agent",
        limits: Limits | None = None,
        **others: Any,
    ) -> None:
        Settings.refuse(others)
        self.settings = Settings(
            root=root,
            host=host,
            port=port,
            network=network,
            allowed_hosts=allowed_hosts,
            mounts=tuple(mounts),
            env=MappingProxyType(dict(env or {})),
            ports=ports,
            track_files=track_files,
            require_isolation=require_isolation,
            isolation=isolation,
            guest_path=guest_path,
            user=user,
            limits=limits or Limits(),
        )
        self.card: Card | None = None
        self._owner: Callable[[], object] | None = None
        self._rooms: dict[object, Room] = {}
        self._server: SshServer | None = None
        self._fixed: FixedRoot | None = None
        self._tracking: TrackingServer | None = None
        self._changing = asyncio.Lock()

    # A bridge's life ----------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int | None:
        return None if self.settings.fixed_root is None else 1

    async def start(self) -> None:
        """Find out what isolates here, and listen.

        Raises :class:`~hudsim.errors.SandboxError` where there can be no sandbox, :class:`~hudsim.errors.UsageError`
        for a directory that another workspace has.
        """
        async with self._changing:
            if self._server is not None:
                return
            settings = self.settings
            self.card = await probe(isolation=settings.isolation, network=settings.network)
            await asyncio.to_thread(clean_once)
            ssh = await asyncio.to_thread(importlib.import_module, "hudsim.coding.ssh")  # asyncssh takes 0.2 s
            try:
                if settings.fixed_root is not None:
                    self._fixed = await FixedRoot.take(settings.fixed_root, isolated=settings.isolated)
                if settings.track_files:
                    self._tracking = await TrackingServer.start(settings.host)
                self._server = await ssh.SshServer.shared(settings.host, settings.port)
            except OSError as error:
                await self._take_down()
                raise UsageError(f"workspace: cannot listen at {settings.host}:{settings.port}: {error}") from error
            except BaseException:
                await self._take_down()
                raise

    async def stop(self) -> None:
        async with self._changing:
            await self._take_down()

    def capability(self, name: str) -> Capability:
        """``ssh/2``. Its params: ``host_pubkey``, ``user``, ``cwd``, ``shell``, ``isolation``. After ``start``."""
        server, card, settings = self._running(), self.card, self.settings
        assert card is not None
        return Capability.ssh(
            name=name,
            url=f"ssh://{settings.host}:{server.port}",
            user=settings.user,
            host_pubkey=server.host_pubkey,
            cwd=settings.guest_path if settings.isolated else str(settings.fixed_root or ""),
            shell=SHELL,
            isolation=card.params(),
        )

    def tracking_capability(self, name: str = "filetracking") -> Capability:
        """``filetracking/1``; only with ``track_files``, after ``start``."""
        if self._tracking is None:
            raise UsageError("workspace: files are tracked with track_files=True only, once it has started")
        return Capability.filetracking(name=name, url=f"tcp://{self.settings.host}:{self._tracking.port}")

    async def reset(self, **task_args: Any) -> Episode:
        """A fresh room for whose work this is; the one before it goes. ``task_args`` are not used."""
        await self.leave()
        return Episode(prompt="", token=self.room.id)

    async def result(self, token: str | None = None) -> Any:
        """``{"evidence": […]}`` of the room, which goes. Raises :class:`~hudsim.errors.EpisodeOver` without one."""
        owner = self._whose()
        room = self._rooms.get(owner)
        if room is None or token not in (None, room.id):
            raise EpisodeOver(f"workspace: got the episode {token!r}, expected that of a room which is there")
        record = {"evidence": room.evidence()}
        await self.leave(owner)
        return record

    # Whose room ---------------------------------------------------------------------------------------------------

    def serve(self, owner: Callable[[], object]) -> None:
        """Give every owner a room of its own: ``owner()`` says whose work runs now, None nobody's."""
        self._owner = owner

    @property
    def room(self) -> Room:
        """Of whose work this is; made if there is none.

        Raises :class:`~hudsim.errors.UsageError` outside of a run, :class:`~hudsim.errors.NoFreeSlot` if another run is
        in the one directory.
        """
        self._running()
        owner = self._whose()
        if owner is None and self._owner is not None:
            raise UsageError("workspace: each run has its own; it is asked for outside of a template that runs")
        room = self._rooms.get(owner)
        if room is None:
            if self._fixed is not None and self._rooms:
                raise NoFreeSlot(
                    f"workspace: another run is in {self.settings.root}; with a relative root each has a directory"
                )
            fixed = self._fixed
            root, uid = (None, None) if fixed is None else (fixed.root, fixed.uid)
            room = self._rooms[owner] = Room(self.settings, root=root, uid=uid)
        return room

    async def bindings(self, name: str) -> dict[str, dict[str, Any]]:
        """What the agent of whose work this is needs to come in: by capability. What the host wrote becomes its own."""
        room = self.room
        await room.hand_over()
        changes = await room.track(kept=_KEPT if self._tracking is None else _KEPT_TRACKED)
        if room.key is None:
            from hudsim.coding.keys import new_client_key

            room.key = new_client_key()
            self._running().register(room.key.public, room)
        found = {name: {"user": room.user, "client_key": room.key.private, "session": room.id, "cwd": room.cwd}}
        if self._tracking is not None:
            found["filetracking"] = {"token": self._tracking.track(room.id, changes)}
        return found

    async def changes(self) -> dict[str, Any]:
        """What the agent of whose work this is has done to its files, for a run's record: as ``filetracking/1``
        tells it, but no more than some; nothing before :meth:`bindings`.
        """
        return await self.room.changed(most=_RECORDED_FILES, diffs=_RECORDED)

    async def binding(self) -> dict[str, Any]:
        """What :class:`~hudsim.coding.client.SSHClient` needs beside the capability."""
        return (await self.bindings("shell"))["shell"]

    async def leave(self, owner: object = None) -> None:
        """End the room of ``owner`` (None: of whose work this is), and everything in it. Nothing without one."""
        room = self._rooms.get(self._whose() if owner is None else owner)
        if room is not None:
            await self._end(room)

    # In the room of whose work this is ----------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        """The directory, on the host."""
        fixed = self.settings.fixed_root
        if fixed is not None and (self._server is None or (self._owner is not None and self._whose() is None)):
            return fixed
        return self.room.root

    async def sandbox(self) -> Sandbox:
        """Its sandbox, up and running. What runs in it runs beside all that the agent left there."""
        return await self.room.box.sandbox()

    async def run(
        self,
        argv: Sequence[str] | str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
        keep_running: bool = False,
    ) -> Completed:
        """As :meth:`hudsim.coding.room.Room.run`."""
        return await self.room.run(argv, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s, keep_running=keep_running)

    async def write(self, path: str, data: bytes | str, *, mode: int = 0o644) -> None:
        """As :meth:`hudsim.coding.room.Room.write`."""
        await self.room.write(path, data, mode=mode)

    async def read(self, path: str) -> bytes:
        """As :meth:`hudsim.coding.room.Room.read`."""
        return await self.room.read(path)

    def own(self) -> None:
        """As :meth:`hudsim.coding.room.Room.own`."""
        self.room.own()

    def evidence(self) -> list[str]:
        """As :meth:`hudsim.coding.room.Room.evidence`."""
        return self.room.evidence()

    async def seal(self) -> None:
        """Hang up on the agent, and let it start nothing any more. Idempotent; what it left running goes on."""
        room = self.room
        room.seal()
        with contextlib.suppress(TimeoutError):  # cut off they are, and nothing of theirs is admitted any more
            await self._running().hang_up(room)

    async def end_all(self) -> None:
        """Kill everything that runs there."""
        await self.room.box.end_all()

    async def freeze(self, files: Sequence[str] = ("**/*",), **most: int) -> Frozen:
        """:meth:`seal`, then as :meth:`hudsim.coding.room.Room.freeze`."""
        await self.seal()
        return await self.room.freeze(files, **most)

    def new_sandbox(self, binds: Sequence[Bind] = (), **options: Any) -> Box:
        """As :meth:`hudsim.coding.room.Room.new_sandbox`."""
        return self.room.new_sandbox(binds, **options)

    async def snapshot(self) -> Snapshot:
        """As :meth:`hudsim.coding.room.Room.snapshot`."""
        return await self.room.snapshot()

    async def restore(self, snapshot: Snapshot) -> int:
        """As :meth:`hudsim.coding.room.Room.restore`."""
        return await self.room.restore(snapshot)

    async def _end(self, room: Room) -> None:
        if self._tracking is not None:
            self._tracking.forget(room.id)
        try:
            if room.key is not None and self._server is not None:
                await self._server.forget(room.key.public)
        finally:
            try:
                await room.stop()
            finally:
                if self._fixed is not None:
                    await self._fixed.bring_back()
                self._rooms = {key: value for key, value in self._rooms.items() if value is not room}

    def _whose(self) -> object:
        return None if self._owner is None else self._owner()

    def _running(self) -> SshServer:
        if self._server is None:
            raise SandboxError("the workspace has not been started")
        return self._server

    async def _take_down(self) -> None:
        for owner in list(self._rooms):
            with contextlib.suppress(SandboxError, TimeoutError):
                await self._end(self._rooms[owner])
        server, self._server = self._server, None
        if server is not None:
            await server.release()
        tracking, self._tracking = self._tracking, None
        if tracking is not None:
            await tracking.stop()
        fixed, self._fixed = self._fixed, None
        if fixed is not None:
            await fixed.free()
