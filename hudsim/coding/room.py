"""``Room``: one run's own workspace: its directory, its sandbox, and what opens it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hudsim.coding.box import Box
from hudsim.coding.bubblewrap import Bind
from hudsim.coding.freeze import Frozen, freeze_tree
from hudsim.coding.identity import SHELL
from hudsim.coding.process import Completed
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.scope import Scope
from hudsim.coding.uids import Uid
from hudsim.errors import SandboxError, UsageError

if TYPE_CHECKING:
    from hudsim.coding.changes import Changes
    from hudsim.coding.keys import ClientKey
    from hudsim.coding.settings import Settings

__all__ = ["Room"]

MIB = 1 << 20
_MOST_FILES, _MOST_BYTES = 20_000, 256 * MIB
_READ_S = 30.0


class Room(Scope):
    """Made at once; :meth:`stop` removes it.

    id
        Its name on this host.
    root
        The directory on the host, which commands see as ``cwd``.
    box
        Its sandbox, and what belongs to that.
    key
        What opens it over SSH. None: it has not been handed over yet.
    changes
        What the agent does to its files. None: as for ``key``.
    """

    def __init__(self, settings: Settings, *, root: Path | None = None, uid: Uid | None = None) -> None:
        self.key: ClientKey | None = None
        self.changes: Changes | None = None
        self._settings = settings
        self._frozen: list[Frozen] = []
        self._numbers = itertools.count(1)
        self._sealed = False
        self._changed = True
        binds = [bind for mount in settings.mounts if (bind := mount.bind()) is not None]
        self.box = Box(
            binds,
            limits=settings.limits,
            env=settings.env,
            network=settings.network,
            isolated=settings.isolated,
            root=root,
            guest_path=settings.guest_path,
            uid=uid,
            user=settings.user,
            kind="room",
        )
        assert self.box.root is not None
        self.id, self.root, self.cwd = self.box.folder.name, self.box.root, self.box.plan.cwd

    # For the agent, over SSH --------------------------------------------------------------------------------------

    async def sandbox(self) -> Sandbox:
        """Up and running. Raises :class:`~hudsim.errors.SandboxError` once the room is frozen."""
        if self._sealed:
            raise SandboxError("the workspace is closed: its files are being graded")
        return await self._own_sandbox()

    @property
    def environment(self) -> Mapping[str, str]:
        return self.box.plan.environment

    @property
    def shell(self) -> str:
        return SHELL

    @property
    def user(self) -> str:
        return self._settings.user

    # For the template ---------------------------------------------------------------------------------------------

    async def run(
        self,
        argv: Sequence[str] | str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        """As :meth:`hudsim.coding.Sandbox.run`, from the workspace's directory, as the agent would run it."""
        self._changed = True
        sandbox = await self._own_sandbox()
        return await sandbox.run(argv, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)

    async def write(self, path: str | PurePosixPath, data: bytes | str, *, mode: int = 0o644) -> None:
        """Write a file as the agent would, with the folders that it wants. Paths begin at the workspace.

        Raises :class:`~hudsim.errors.SandboxError` with what was said if it cannot be.
        """
        content = data.encode() if isinstance(data, str) else data
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1" && chmod "$2" -- "$1"'
        await self._done("write", ["/bin/sh", "-c", script, "sh", str(path), f"{mode:o}"], stdin=content)

    async def read(self, path: str | PurePosixPath) -> bytes:
        """A file's bytes, as the agent would see them. Raises :class:`~hudsim.errors.SandboxError` as :meth:`write`."""
        script = 'test -f "$1" || { echo "$1: no such file" >&2; exit 1; }; exec cat -- "$1"'
        done = await self._done("read", ["/bin/sh", "-c", script, "sh", str(path)])
        if done.truncated:
            raise SandboxError(f"cannot read {path}: {done.stdout_bytes:,} bytes, more than {len(done.stdout):,}")
        return done.stdout

    def own(self, folder: Path | None = None) -> None:
        """Give what the host wrote in the workspace (``folder`` None: in all of it) to the agent's user."""
        whole = self.root if folder is None else folder
        if not whole.resolve().is_relative_to(self.root.resolve()):
            raise UsageError(f"own: got {whole}, expected a folder in the workspace, {self.root}")
        self.box.own(whole)

    def evidence(self) -> list[str]:
        """Which limits it is known to have run into, in words; [] none is."""
        return self.box.evidence()

    async def freeze(
        self,
        files: Sequence[str] = ("**/*",),
        *,
        most_files: int = _MOST_FILES,
        most_bytes: int = _MOST_BYTES,
    ) -> Frozen:
        """Kill everything that runs here, let the agent start nothing any more, and copy its files.

        ``files`` are patterns of paths; what is no regular file, or is too much, is left out and named, and so are
        folders that tools fill, unless a pattern names them: see :func:`~hudsim.coding.freeze.freeze_tree`.
        """
        self._sealed = True
        await self.box.end_all()
        folder = self.box.folder / f"frozen-{next(self._numbers)}"
        frozen = await asyncio.to_thread(
            freeze_tree, self.root, folder, files, most_files=most_files, most_bytes=most_bytes
        )
        self._frozen.append(frozen)
        return frozen

    def new_sandbox(self, binds: Sequence[Bind] = (), **options: object) -> Box:
        """A fresh sandbox beside this one, for graders: see :class:`~hudsim.coding.box.Box`; this one's limits."""
        return Box(binds, **{"limits": self._settings.limits, **options})  # type: ignore[arg-type]

    async def hand_over(self) -> None:
        """What the template wrote is the agent's from now on."""
        await asyncio.to_thread(self.own)
        self._changed = False

    async def stop(self) -> None:
        """End everything in it and remove it. Idempotent."""
        self._sealed = True
        await self.box.stop()

    async def _own_sandbox(self) -> Sandbox:
        if self._changed:
            await self.hand_over()
        return await self.box.sandbox()

    async def _done(self, what: str, argv: Sequence[str], stdin: bytes = b"") -> Completed:
        done = await self.run(argv, stdin=stdin, timeout_s=_READ_S)
        if done.code:
            said = "it took too long" if done.timed_out else done.stderr.decode(errors="replace").strip()
            raise SandboxError(f"cannot {what} {argv[4]}: {said}")
        return done
