"""``Room``: one run's own workspace: its directory, its sandbox, and what opens it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hudsim.coding.box import Box
from hudsim.coding.bubblewrap import Bind
from hudsim.coding.changes import Changes
from hudsim.coding.freeze import Frozen, freeze_tree, is_no_room
from hudsim.coding.identity import SHELL
from hudsim.coding.process import Completed
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.scope import Scope
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.steps import to_its_end
from hudsim.coding.tree import own_tree
from hudsim.coding.turns import Turns
from hudsim.coding.uids import Uid
from hudsim.errors import SandboxError, WorkspaceError

if TYPE_CHECKING:
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
        self._open = asyncio.Event()
        self._open.set()
        self._turns = Turns()
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
        """Up and running. As :meth:`admitted`, which is asked again when something is to start in it."""
        await self.admitted()
        return await self._own_sandbox()

    async def admitted(self) -> None:
        """Return when the agent may start something. Raises :class:`~hudsim.errors.SandboxError` once it is sealed.

        It holds until whoever asked lets others run.
        """
        while not self._sealed and not self._open.is_set():
            await self._open.wait()
        if self._sealed:
            raise SandboxError("the workspace is closed: its files are being graded")

    @property
    def sealed(self) -> bool:
        return self._sealed

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
        keep_running: bool = False,
    ) -> Completed:
        """As :meth:`hudsim.coding.Sandbox.run`, from the workspace's directory, as the agent would run it.

        Once the room is sealed it runs alone, :meth:`at_rest`: what the agent or another command left running is
        ended, and other commands wait. With ``keep_running`` all of that goes on beside it, and can, as its user, read
        its words, stop it, and change what it says and exits with.
        """
        self._changed = True
        async with self._turn(keep_running):
            with _told("run a command"):
                sandbox = await self._own_sandbox()
                return await sandbox.run(argv, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)

    async def write(self, path: str | PurePosixPath, data: bytes | str, *, mode: int = 0o644) -> None:
        """Write a file as the agent would, with the folders that it wants. Paths begin at the workspace.

        Raises :class:`~hudsim.errors.WorkspaceError` with what was said if the files do not let it be.
        """
        content = data.encode() if isinstance(data, str) else data
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1" && chmod "$2" -- "$1"'
        await self._done("write", ["/bin/sh", "-c", script, "sh", str(path), f"{mode:o}"], stdin=content)

    async def read(self, path: str | PurePosixPath) -> bytes:
        """A file's bytes, as the agent would see them: of a regular one that is there, and no longer than
        ``output_bytes``. Raises :class:`~hudsim.errors.WorkspaceError` for any other.
        """
        script = 'test -f "$1" || { echo "$1: no such file" >&2; exit 1; }; exec cat -- "$1"'
        done = await self._done("read", ["/bin/sh", "-c", script, "sh", str(path)])
        if done.truncated:
            raise WorkspaceError(f"cannot read {path}: {done.stdout_bytes:,} bytes, more than {len(done.stdout):,}")
        return done.stdout

    def own(self) -> None:
        """Give what the host wrote in the workspace to the agent's user.

        A file that has another name elsewhere on the host becomes a copy of its own.
        """
        own_tree(self.root, None if self.box.uid is None else self.box.uid.number)

    def evidence(self) -> list[str]:
        """Which limits it is known to have run into, in words; [] none is."""
        return self.box.evidence()

    def seal(self) -> None:
        """Let the agent start nothing here any more. Idempotent; what it left running goes on: see :meth:`run`."""
        self._sealed = True

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[None]:
        """Kill everything that runs here, and have what the agent starts wait until the block ends.

        Waits for those who are in such a block, and, once the room is sealed, for the commands of its template.
        """
        async with self._turns.alone():
            self._open.clear()
            try:
                await self.box.end_all()
                yield
            finally:
                self._open.set()

    async def freeze(
        self,
        files: Sequence[str] = ("**/*",),
        *,
        most_files: int = _MOST_FILES,
        most_bytes: int = _MOST_BYTES,
    ) -> Frozen:
        """Kill everything that runs here, let the agent start nothing any more, and copy its files.

        ``files`` are patterns of paths; what is no regular file, or is too much, is left out and named, and so are
        folders that tools fill, unless a pattern names them: see :func:`~hudsim.coding.freeze.freeze_tree`. Raises
        :class:`OSError` if the host's disk is full.
        """
        self.seal()
        folder = self.box.folder / f"frozen-{next(self._numbers)}"
        async with self.at_rest():
            with _told("freeze its files", but=is_no_room):
                frozen = await to_its_end(
                    freeze_tree, self.root, folder, files, most_files=most_files, most_bytes=most_bytes
                )
        self._frozen.append(frozen)
        return frozen

    async def snapshot(self) -> Snapshot:
        """The files as they are, for :meth:`restore`; goes with the room. Everything that runs here is killed, and
        what the agent starts meanwhile waits.
        """
        store = self.box.folder / f"snapshot-{next(self._numbers)}"
        async with self.at_rest():
            await self.hand_over()
            with _told("copy its files"):
                return await to_its_end(Snapshot.take, self.root, store)

    async def restore(self, snapshot: Snapshot) -> int:
        """Bring the files back; how many were written. As for :meth:`snapshot` of what runs here."""
        async with self.at_rest():
            with _told("bring back its files"):
                return await to_its_end(snapshot.restore)

    def new_sandbox(self, binds: Sequence[Bind] = (), **options: object) -> Box:
        """A fresh sandbox beside this one, for graders: see :class:`~hudsim.coding.box.Box`; this one's limits."""
        return Box(binds, **{"limits": self._settings.limits, **options})  # type: ignore[arg-type]

    async def hand_over(self) -> None:
        """What the template wrote is the agent's from now on."""
        with _told("hand over its files"):
            await to_its_end(self.own)
        self._changed = False

    async def track(self, *, kept: int) -> Changes:
        """What the agent does to its files from now on, or since this was asked first; see
        :class:`~hudsim.coding.changes.Changes`.
        """
        if self.changes is None:
            with _told("read its files"):
                self.changes = await to_its_end(Changes, self.root, kept=kept)
        return self.changes

    async def changed(self, *, most: int, diffs: int) -> dict[str, Any]:
        """As :meth:`hudsim.coding.changes.Changes.now`; nothing before :meth:`track`."""
        if self.changes is None:
            return {"changes": [], "left_out": 0}
        with _told("read its files"):
            return await to_its_end(self.changes.now, most=most, diffs=diffs)

    async def stop(self) -> None:
        """End everything in it and remove it. Idempotent."""
        self.seal()
        await self.box.stop()

    def _turn(self, keep_running: bool) -> contextlib.AbstractAsyncContextManager[None]:
        if not self._sealed:
            return contextlib.nullcontext()
        return self._turns.beside() if keep_running else self.at_rest()

    async def _own_sandbox(self) -> Sandbox:
        if self._changed:
            await self.hand_over()
        return await self.box.sandbox()

    async def _done(self, what: str, argv: Sequence[str], stdin: bytes = b"") -> Completed:
        done = await self.run(argv, stdin=stdin, timeout_s=_READ_S)
        if done.code:
            said = "it took too long" if done.timed_out else done.stderr.decode(errors="replace").strip()
            raise WorkspaceError(f"cannot {what} {argv[4]}: {said}")
        return done


@contextlib.contextmanager
def _told(what: str, *, but: Callable[[OSError], bool] = lambda _: False) -> Iterator[None]:
    """This host's want of descriptors, memory or disk, as what it comes to here; some errors go on as they are."""
    try:
        yield
    except OSError as error:
        if but(error):
            raise
        raise SandboxError(f"workspace: cannot {what}: {error.strerror or error}") from error
