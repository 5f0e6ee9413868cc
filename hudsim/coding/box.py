"""``Box``: a sandbox with all that is its own on the host: a folder, a user id, control groups, a watchdog."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hudsim.coding.bubblewrap import BIN, Bind, Plan
from hudsim.coding.cgroups import Controllers, Group
from hudsim.coding.identity import SHELL, etc_files
from hudsim.coding.limits import Limits
from hudsim.coding.pasta import NAMESERVER, Network
from hudsim.coding.place import Place
from hudsim.coding.process import Completed
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.scope import Scope
from hudsim.coding.steps import to_its_end
from hudsim.coding.tree import own_tree, remove_tree
from hudsim.coding.uids import Uid
from hudsim.coding.watchdog import Watchdog
from hudsim.errors import SandboxBroken, SandboxError, WorkspaceError

__all__ = ["Box", "environment_of"]


class Box(Scope):
    """Made at once; its sandbox comes up with the first command. ``stop`` leaves nothing.

    ::

        async with Box([Bind(tests, "/tests")], limits=Limits(), cwd="/tests") as box:
            done = await box.run(["ls"])

    folder
        On the host, mode 0700, its own; it goes with the box.
    root
        The directory on the host that commands see, and may write, at ``guest_path``; its bytes and files are limited.
        None, with a ``guest_path``: a fresh one; without: there is none.
    uid
        As root: its own, to whom what it may write must belong (:meth:`own`, :meth:`new_folder`). None: this user's.
    """

    def __init__(
        self,
        binds: Sequence[Bind] = (),
        *,
        limits: Limits,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        network: Network = False,
        isolated: bool = True,
        root: Path | None = None,
        guest_path: str | None = None,
        uid: Uid | None = None,
        user: str = "agent",
        kind: str = "box",
    ) -> None:
        self._place = Place.mine()
        self.folder = self._place.room(kind)
        self._group: Group | None = None
        self._sandbox: Sandbox | None = None
        self._dog: Watchdog | None = None
        self._found: list[str] = []
        self._closed = False
        self._brought_uid = uid is not None
        self.uid, self.root, self.limits = uid, root, limits
        try:
            if uid is None and isolated and os.geteuid() == 0:
                self.uid = Uid.take()
            if guest_path is not None and root is None:
                self.root = self.new_folder("root")
            seen_at = guest_path if isolated else self.root and str(self.root)
            home = seen_at or "/tmp"  # noqa: S108 - the sandbox's own
            number = os.geteuid() if self.uid is None else self.uid.number
            own = [] if self.root is None or guest_path is None else [Bind(self.root, guest_path, writable=True)]
            environment = {**environment_of(home, user, isolated=isolated), **(env or {})}
            self.plan = Plan(
                [*own, *binds],
                environment,
                limits,
                network=network,
                cwd=cwd or seen_at or "/",
                isolated=isolated,
                files=etc_files(number, user, home, nameserver=NAMESERVER if network is True else None),
            )
        except BaseException:
            self._free()
            raise

    async def sandbox(self) -> Sandbox:
        """Up and running. Raises :class:`~hudsim.errors.SandboxError` if it cannot be, or is closed."""
        if self._closed:
            raise SandboxError("the sandbox was closed")
        if self._sandbox is None:
            self._sandbox = self._made()
        await self._sandbox.start()
        assert self._dog is not None
        self._dog.start()
        return self._sandbox

    async def run(
        self,
        argv: Sequence[str] | str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        """As :meth:`hudsim.coding.Sandbox.run`; :attr:`~hudsim.errors.SandboxBroken.data` has our ``evidence``.

        No agent works here, so that a program or folder that is not there is :class:`~hudsim.errors.SandboxError` too.
        """
        try:
            return await (await self.sandbox()).run(argv, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)
        except SandboxBroken as error:
            error.data["evidence"] = self.evidence()
            raise
        except WorkspaceError as error:
            raise SandboxError(f"the sandbox beside the workspace: {error.message}") from error

    async def end_all(self) -> None:
        """Kill all that runs in it."""
        if self._sandbox is not None:
            await self._sandbox.end_all()

    def new_folder(self, name: str) -> Path:
        """One more folder of its own on the host, which its user may write, to be bound."""
        folder = self.folder / name
        folder.mkdir(mode=0o755)
        self.own(folder)
        return folder

    def own(self, folder: Path) -> None:
        """Give a folder and all in it to its user. Nothing happens where it is this process's user."""
        if self.uid is not None:
            own_tree(folder, self.uid.number)

    def evidence(self) -> list[str]:
        """Which limits it is known to have run into, and how that is known; [] none is."""
        now = [] if self._group is None else self._group.evidence()
        return [*self._found, *now, *([] if self._dog is None else self._dog.found)]

    async def stop(self) -> None:
        """End it, and remove all that is its own. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._found, dog, self._dog = self.evidence(), self._dog, None
        if dog is not None:
            await dog.stop()
        if self._sandbox is not None:
            await self._sandbox.stop()
        await to_its_end(self._free)

    def _made(self) -> Sandbox:
        found = Controllers.found() if self.plan.isolated else Controllers(None, {})
        if found.version is not None:
            self._group = found.group(f"{self._place.tag}-{self.folder.name}")
            self._place.note_cgroups(self._group.folders)  # first: we may be killed between the two
            self._group.make(self.limits)
        groups = [] if self._group is None else self._group.folders
        sandbox = Sandbox(self.plan, uid=self.uid, cgroups=groups)
        self._dog = Watchdog(
            self.limits,
            folder=self.root,
            first=lambda: sandbox.pid,
            uid=os.geteuid() if self.uid is None else self.uid.number,
            grouped=bool(groups),
            end_all=sandbox.end_all,
        )
        return sandbox

    def _free(self) -> None:
        group, self._group = self._group, None
        try:
            if group is not None:
                group.remove()
            remove_tree(self.folder)
        finally:
            if self.uid is not None and not self._brought_uid:
                self.uid.free()


def environment_of(home: str, user: str, *, isolated: bool = True) -> dict[str, str]:
    """All the variables that a command is given; none of them is a secret of the host."""
    folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    own = f"{BIN}:{sys.base_prefix}/bin"
    path = os.environ.get("PATH", folders) if not isolated else f"{own}:{folders}"
    return {
        "PATH": path,
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
        "SHELL": SHELL,
    }
