"""``Snapshot``: a tree of files as it was, to which it can be brought back."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

from hudsim.coding.tree import remove_tree, walk_tree

__all__ = ["Snapshot"]

_DEEPEST = 128


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is restored of a file, folder or link."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    link: str | None = None


@dataclass
class Snapshot:
    """Made by :meth:`take`, in ``store``, a folder of its own; the tree is at ``root``.

    What has not been touched since costs a look at it, no copy: a file is known by its inode and the kernel's time of
    its last change, which nobody can set.
    """

    root: Path
    store: Path
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _marks: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    def take(cls, root: Path, store: Path) -> Snapshot:
        """Copy the tree. FIFOs, sockets and devices are left out. Blocks: not on the event loop."""
        store.mkdir(mode=0o700)
        snapshot = cls(root, store)
        snapshot._entries[""] = _entry(root.lstat())
        for parent, name, path, about in walk_tree(root, depth=_DEEPEST):
            kind = stat.S_IFMT(about.st_mode)
            if kind == stat.S_IFDIR:
                (store / path).mkdir(mode=0o700)
            elif kind == stat.S_IFREG:
                shutil.copyfile(root / path, store / path, follow_symlinks=False)
                snapshot._marks[path] = _mark(os.stat(name, dir_fd=parent, follow_symlinks=False))
            elif kind != stat.S_IFLNK:
                continue
            link = os.readlink(name, dir_fd=parent) if kind == stat.S_IFLNK else None
            snapshot._entries[path] = _entry(about, link)
        return snapshot

    def restore(self, *, owner: int | None = None) -> int:
        """Bring the tree back; how many files were written. Nothing may be running in it. Blocks.

        ``owner``: whose everything is to be. None: whose it was.
        """
        found = {path: about for _, _, path, about in walk_tree(self.root, depth=_DEEPEST)}
        for path, about in found.items():
            entry = self._entries.get(path)
            if entry is None or stat.S_IFMT(entry.mode) != stat.S_IFMT(about.st_mode):
                remove_tree(self.root / path)
        written = 0
        for path, entry in self._entries.items():
            written += self._bring_back(path, entry, found.get(path), owner)
        for path, entry in reversed(self._entries.items()):
            if stat.S_ISDIR(entry.mode):
                os.utime(self.root / path, ns=(entry.mtime_ns, entry.mtime_ns))
        return written

    def close(self) -> None:
        """Remove the copy. Idempotent."""
        remove_tree(self.store)

    def _bring_back(self, path: str, entry: _Entry, about: os.stat_result | None, owner: int | None) -> bool:
        """One of them; whether it had to be written."""
        target = self.root / path
        uid, gid = (entry.uid, entry.gid) if owner is None else (owner, owner)
        if stat.S_ISDIR(entry.mode):
            target.mkdir(mode=0o700, exist_ok=True)
        elif entry.link is not None:
            if about is None or not target.is_symlink() or os.readlink(target) != entry.link:  # noqa: PTH115
                target.unlink(missing_ok=True)
                target.symlink_to(entry.link)
                os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)
            _own(target, uid, gid)
            return False
        elif about is not None and self._marks.get(path) == _mark(about) and (about.st_uid, about.st_gid) == (uid, gid):
            return False
        else:
            target.unlink(missing_ok=True)
            shutil.copyfile(self.store / path, target, follow_symlinks=False)
        _own(target, uid, gid)
        target.chmod(stat.S_IMODE(entry.mode))
        if stat.S_ISDIR(entry.mode):
            return False
        os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
        self._marks[path] = _mark(target.lstat())
        return True


def _entry(about: os.stat_result, link: str | None = None) -> _Entry:
    return _Entry(about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, link)


def _mark(about: os.stat_result) -> tuple[int, int, int]:
    return about.st_ino, about.st_ctime_ns, about.st_size


def _own(path: Path, uid: int, gid: int) -> None:
    with contextlib.suppress(PermissionError):  # an ordinary user keeps what is its own
        os.chown(path, uid, gid, follow_symlinks=False)
