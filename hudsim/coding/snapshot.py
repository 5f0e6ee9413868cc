"""``Snapshot``: a tree of files as it was, to which it can be brought back."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hudsim.coding.tree import DEEPEST, copy_bytes, names, open_file, remove_tree, take_folder, walk_tree

__all__ = ["Snapshot"]

_Mark = tuple[int, int, int]


@dataclass(slots=True)
class _Entry:
    """What is restored of a file, folder or link.

    link
        Where a link leads to.
    copy, mark
        Where a file's bytes are kept, and what it is known by while it is the same.
    inside
        What is in a folder. None: nobody looked into it, nor will.
    """

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    link: str | None = None
    copy: Path | None = None
    mark: _Mark | None = None
    inside: dict[str, _Entry] | None = None


@dataclass
class Snapshot:
    """Made by :meth:`take`, in ``store``, a folder of its own; the tree is at ``root``.

    What has not been touched since costs a look at it, no copy: a file is known by its inode and the kernel's time of
    its last change, which nobody can set. Nothing is read or written but in folders that are held open, so that no
    link leads elsewhere, whenever it was put there.
    """

    root: Path
    store: Path
    _top: _Entry = field(repr=False)

    @classmethod
    def take(cls, root: Path, store: Path) -> Snapshot:
        """Copy the tree. FIFOs, sockets and devices are left out. Blocks: not on the event loop.

        Raises :class:`OSError` for what cannot be copied.
        """
        store.mkdir(mode=0o700)
        numbers = itertools.count(1)
        top = _entry(root.lstat())
        top.inside = {}
        folders = {"": top}

        def closed(path: str, _: os.stat_result) -> None:
            folders[path].inside = None

        for parent, name, path, about in walk_tree(root, depth=DEEPEST, closed=closed):
            entry = _entry(about)
            if stat.S_ISDIR(about.st_mode):
                folders[path] = entry
                entry.inside = {} if path.count("/") < DEEPEST else None
            elif stat.S_ISLNK(about.st_mode):
                entry.link = os.readlink(name, dir_fd=parent)
            elif stat.S_ISREG(about.st_mode):
                entry.copy = store / str(next(numbers))
                entry.mark = _kept(name, parent, entry.copy)
            else:
                continue
            folder = folders[path.rpartition("/")[0]].inside
            assert folder is not None
            folder[name] = entry
        return cls(root, store, top)

    def restore(self, *, owner: int | None = None) -> int:
        """Bring the tree back; how many files were written. Nothing may be running in it. Blocks.

        ``owner``: whose everything is to be. None: whose it was. Raises :class:`OSError` for what cannot be.
        """
        return self._filled(self.root, None, self._top, owner)

    def close(self) -> None:
        """Remove the copy. Idempotent."""
        remove_tree(self.store)

    def _filled(self, name: Path | str, at: int | None, folder: _Entry, owner: int | None) -> int:
        """Bring back what is in a folder that is there, and then itself."""
        if folder.inside is None:
            return 0
        with _closing(take_folder(name, at)) as fd:
            found = {}
            for there in names(fd):
                about = os.stat(there, dir_fd=fd, follow_symlinks=False)
                entry = folder.inside.get(there)
                if entry is None or stat.S_IFMT(entry.mode) != stat.S_IFMT(about.st_mode):
                    remove_tree(there, at=fd)
                else:
                    found[there] = about
            written = 0
            for there, entry in folder.inside.items():
                written += self._brought_back(there, fd, entry, found.get(there), owner)
            _finish(fd, folder, owner)
        return written

    def _brought_back(self, name: str, at: int, entry: _Entry, found: os.stat_result | None, owner: int | None) -> int:
        """One of them; how many files were written. ``found``: it is there, and of its kind."""
        if stat.S_ISDIR(entry.mode):
            if found is None:
                os.mkdir(name, 0o700, dir_fd=at)
            return self._filled(name, at, entry, owner)
        if entry.link is not None:
            if found is None or os.readlink(name, dir_fd=at) != entry.link:
                _unlink(name, at)
                os.symlink(entry.link, name, dir_fd=at)
                os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=at, follow_symlinks=False)
            with contextlib.suppress(PermissionError):  # an ordinary user keeps what is its own
                os.chown(name, *_owners(entry, owner), dir_fd=at, follow_symlinks=False)
            return 0
        if found is not None and entry.mark == _mark(found) and (found.st_uid, found.st_gid) == _owners(entry, owner):
            return 0
        assert entry.copy is not None
        _unlink(name, at)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _closing(os.open(name, flags, 0o600, dir_fd=at)) as fd:
            with _closing(os.open(entry.copy, os.O_RDONLY | os.O_CLOEXEC)) as copy:
                copy_bytes(copy, fd, os.fstat(copy).st_size)
            _finish(fd, entry, owner)
            entry.mark = _mark(os.fstat(fd))
        return 1


def _kept(name: str, at: int, copy: Path) -> _Mark:
    """A file's bytes, in ``copy``; what it is known by."""
    with _closing(open_file(name, at)) as fd:
        about = os.fstat(fd)
        with _closing(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)) as target:
            copy_bytes(fd, target, about.st_size)
        return _mark(about)


def _finish(fd: int, entry: _Entry, owner: int | None) -> None:
    """Its owner, mode and time; what is so already is left alone, as it may be another user's."""
    about, (uid, gid) = os.fstat(fd), _owners(entry, owner)
    if (about.st_uid, about.st_gid) != (uid, gid):
        with contextlib.suppress(PermissionError):  # an ordinary user keeps what is its own
            os.fchown(fd, uid, gid)
    if os.fstat(fd).st_mode != entry.mode:
        os.fchmod(fd, stat.S_IMODE(entry.mode))
    if about.st_mtime_ns != entry.mtime_ns:
        os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))


def _entry(about: os.stat_result) -> _Entry:
    return _Entry(about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns)


def _mark(about: os.stat_result) -> _Mark:
    return about.st_ino, about.st_ctime_ns, about.st_size


def _owners(entry: _Entry, owner: int | None) -> tuple[int, int]:
    return (entry.uid, entry.gid) if owner is None else (owner, owner)


def _unlink(name: str, at: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=at)


@contextlib.contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)
