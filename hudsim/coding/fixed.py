"""``FixedRoot``: a directory of the host's that runs work in, one after another."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Self

from hudsim.coding.place import Place, state_folder
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.tree import own_tree, remove_tree
from hudsim.coding.uids import Uid
from hudsim.errors import UsageError

__all__ = ["FixedRoot"]


class FixedRoot:
    """Ours until :meth:`free`; each run finds it as it was when it was taken.

    As root it belongs to the user id ``uid`` meanwhile, and afterwards to whom it did.
    """

    def __init__(self, root: Path, lock: int, *, isolated: bool) -> None:
        self.root = root
        self.uid = Uid.take() if isolated and os.geteuid() == 0 else None
        self._lock = lock
        self._folder = Place.mine().room("snapshot")
        self._snapshot: Snapshot | None = None

    @classmethod
    async def take(cls, root: Path, *, isolated: bool) -> Self:
        """Make it if it is not there. Raises :class:`~hudsim.errors.UsageError` if another workspace has it."""
        fixed = cls(root, _locked(root), isolated=isolated)
        try:
            await asyncio.to_thread(fixed._begin)
        except BaseException:
            await fixed.free()
            raise
        return fixed

    async def bring_back(self) -> None:
        """As it was when it was taken. Nothing may be running in it."""
        if self._snapshot is not None:
            await asyncio.to_thread(self._snapshot.restore, owner=None if self.uid is None else self.uid.number)

    async def free(self) -> None:
        """Give it back to whom it belonged, as it was."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            await asyncio.to_thread(snapshot.restore)
        await asyncio.to_thread(remove_tree, self._folder)
        os.close(self._lock)
        if self.uid is not None:
            self.uid.free()

    def _begin(self) -> None:
        self._snapshot = Snapshot.take(self.root, self._folder / "tree")
        if self.uid is not None:
            own_tree(self.root, self.uid.number)


def _locked(root: Path) -> int:
    """A lock that ends with this process. Raises :class:`~hudsim.errors.UsageError` if somebody has it."""
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise UsageError(f"workspace: got the root {root}, expected a directory")
    root.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    lock = os.open(state_folder() / f".root-{name}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UsageError(
            f"workspace: {root} is in use by another workspace; with a relative root each run has its own directory"
        ) from None
    return lock
