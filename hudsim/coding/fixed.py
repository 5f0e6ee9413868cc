"""``FixedRoot``: a directory of the host's that runs work in, one after another."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Self

from hudsim.coding.place import ROOT_LOCK, Place, changing, state_folder
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.steps import to_its_end
from hudsim.coding.tree import own_tree, remove_tree
from hudsim.coding.uids import Uid
from hudsim.errors import SandboxError, UsageError

__all__ = ["FixedRoot"]


class FixedRoot:
    """Ours until :meth:`free`; each run finds it as it was when it was taken.

    As root it belongs to the user id ``uid`` meanwhile, and afterwards to whom it did.
    """

    def __init__(self, root: Path, lock: _Lock, *, isolated: bool) -> None:
        self.root = root
        self.uid = Uid.take() if isolated and os.geteuid() == 0 else None
        self._lock = lock
        self._folder = Place.mine().room("snapshot")
        self._snapshot: Snapshot | None = None

    @classmethod
    async def take(cls, root: Path, *, isolated: bool) -> Self:
        """Make it if it is not there.

        Raises :class:`~hudsim.errors.UsageError` if another workspace has it, or not all of it can be copied.
        """
        fixed = cls(root, await to_its_end(_Lock, root), isolated=isolated)
        try:
            await to_its_end(fixed._begin)
        except BaseException as error:
            await fixed.free()
            if isinstance(error, OSError):
                raise UsageError(f"workspace: {root} cannot be copied, to be brought back: {error}") from error
            raise
        return fixed

    async def bring_back(self) -> None:
        """As it was when it was taken. Nothing may be running in it.

        Raises :class:`~hudsim.errors.SandboxError` if that cannot be.
        """
        if self._snapshot is not None:
            await self._restored(self._snapshot, None if self.uid is None else self.uid.number)

    async def free(self) -> None:
        """Give it back to whom it belonged, as it was. As :meth:`bring_back`."""
        snapshot, self._snapshot = self._snapshot, None
        try:
            if snapshot is not None:
                await self._restored(snapshot, None)
        finally:
            await to_its_end(remove_tree, self._folder)
            await to_its_end(self._lock.free)
            if self.uid is not None:
                self.uid.free()

    async def _restored(self, snapshot: Snapshot, owner: int | None) -> None:
        try:
            await to_its_end(snapshot.restore, owner=owner)
        except OSError as error:
            raise SandboxError(f"workspace: {self.root} cannot be brought back to what it was: {error}") from error

    def _begin(self) -> None:
        self._snapshot = Snapshot.take(self.root, self._folder / "tree")
        own_tree(self.root, None if self.uid is None else self.uid.number)


class _Lock:
    """On a directory, made if it is not there; the lock is in this user's state folder, and ends with this process.

    Blocks while others change that folder. Raises :class:`~hudsim.errors.UsageError` if somebody has it.
    """

    def __init__(self, root: Path) -> None:
        if root.is_symlink() or (root.exists() and not root.is_dir()):
            raise UsageError(f"workspace: got the root {root}, expected a directory")
        root.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
        self._path = state_folder() / f"{ROOT_LOCK}{name}"
        with changing():
            self._fd = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._fd)
                raise UsageError(
                    f"workspace: {root} is in use by another workspace; with a relative root each run has its own"
                    " directory"
                ) from None

    def free(self) -> None:
        with changing():
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
