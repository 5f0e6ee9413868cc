"""``tree``: walking, owning and removing folders that somebody hostile has filled."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = [
    "DEEPEST",
    "Shuns",
    "Use",
    "copy_bytes",
    "is_gone",
    "measure",
    "names",
    "open_file",
    "own_tree",
    "remove_tree",
    "take_folder",
    "walk_tree",
]

DEEPEST = 128
"""Folders within which one is not looked into any more."""

_DEEP = 64
_ENDLESS = 1 << 60
_PIECE = 1 << 20
_ITSELF = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
"""What opens whatever has a name, and needs no right to what is in it."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENXIO})
"""ENXIO: a socket stands in its place."""
_NOT_BETWEEN = frozenset({errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})
"""What a kernel says that does not copy from one of two file systems to the other by itself."""

Shuns = Callable[[int, str, str], bool]
"""Whether a folder is not entered: the descriptor of the one it is in, its name, its path from the top."""

Closed = Callable[[str, os.stat_result], None]
"""Told of a folder that cannot be looked into: its path from the top, and what it is."""

Use = tuple[int, int]
"""Bytes on the disk, and number of files and folders."""


def walk_tree(
    folder: Path, *, depth: int = _DEEP, shuns: Shuns = lambda *_: False, closed: Closed = lambda *_: None
) -> Iterator[tuple[int, str, str, os.stat_result]]:
    """Everything below ``folder``: (descriptor of the folder it is in, its name, its path from ``folder``, what it is).

    No link is followed. A folder comes before what is in it; below ``depth`` folders nothing is entered, nor what
    ``shuns`` says. What goes away meanwhile is left out. A folder of this user's own is looked into whatever its mode,
    which it has back afterwards; ``closed`` is told of what cannot be. Raises :class:`OSError` for all that is no doing
    of the tree's: no descriptors, no memory, a broken disk.
    """
    try:
        top, mode = _enter(folder, None)
    except PermissionError:
        closed("", folder.lstat())
        return
    except OSError as error:
        if is_gone(error):
            return
        raise
    try:
        yield from _walk(top, "", depth, shuns, closed)
    finally:
        _leave(top, mode)


def measure(folder: Path, *, most_files: int | None = None) -> Use:
    """What is in it. Stops counting once there is more than ``most_files``.

    What nobody looks into counts as endless: folders within more than 128 others, and this user's own that cannot be
    opened. Raises :class:`OSError` as :func:`walk_tree`.
    """
    size = count = 0

    def closed(_: str, about: os.stat_result) -> None:
        nonlocal size
        size += _ENDLESS if about.st_uid == os.geteuid() else 0

    for _, _, path, about in walk_tree(folder, depth=DEEPEST, closed=closed):
        size += about.st_blocks * 512
        count += 1
        if stat.S_ISDIR(about.st_mode) and path.count("/") == DEEPEST:
            size += _ENDLESS
        if most_files is not None and count > most_files:
            break
    return size, count


def own_tree(folder: Path, uid: int | None) -> None:
    """Give ``folder`` and all in it to the user ``uid``, and to its group. None: it is this user's, and stays so.

    A regular file that has another name elsewhere (``git clone`` makes such hard links of a repository's objects)
    becomes a copy of its own: what its new owner writes is not written there. With ``uid`` that holds for every file
    that has several names, so that no race for one is to be won. Raises :class:`OSError` for what cannot be done.
    """
    if uid is None:
        _unshare(folder)
        return
    os.chown(folder, uid, uid)
    for parent, name, _, about in walk_tree(folder, depth=DEEPEST):
        if (about.st_uid, about.st_gid) != (uid, uid):
            _own(parent, name, uid)


def remove_tree(folder: Path | str, *, at: int | None = None) -> None:
    """Remove it and all in it, however deep and whatever its modes. Nothing happens if it is not there.

    ``at``: the descriptor of the folder that its path begins in; None: this process's.
    """
    try:
        about = os.stat(folder, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return
    moved = (f".hudsim-deep-{n}" for n in itertools.count())
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(about.st_mode):
            os.unlink(folder, dir_fd=at)
            return
        while True:
            top = take_folder(folder, at)
            try:
                is_empty = _empty(top, top, 0, moved)
            finally:
                os.close(top)
            if is_empty:
                os.rmdir(folder, dir_fd=at)
                return


def take_folder(name: Path | str, at: int | None) -> int:
    """The descriptor of a folder, in which this user may do everything from now on. Raises :class:`OSError`."""
    return _enter(name, at, 0o700)[0]


def names(at: int) -> list[str]:
    """What is in the folder that ``at`` is the descriptor of; [] if that is gone."""
    try:
        return os.listdir(at)
    except OSError as error:
        if is_gone(error):
            return []
        raise


def open_file(name: str, at: int) -> int:
    """The descriptor of a regular file, to read it; this user's own whatever its mode, which it has back at once.

    No link is followed. Raises :class:`OSError`, also for what is no regular file.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except PermissionError:
        fd = _opened_anyway(name, at)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise FileNotFoundError(errno.ENOENT, "it is no regular file any more", name)


def copy_bytes(source: int, target: int, size: int) -> None:
    """``size`` of them, or as many as there are, between two descriptors. Raises :class:`OSError`."""
    at = 0
    try:
        while at < size and (sent := os.copy_file_range(source, target, min(size - at, _PIECE), at)):
            at += sent
    except OSError as error:
        if error.errno not in _NOT_BETWEEN:
            raise
        while at < size and (sent := os.sendfile(target, source, at, min(size - at, _PIECE))):
            at += sent


def is_gone(error: OSError) -> bool:
    """Whether it says that something is not there any more, is something else, or may not be looked at."""
    return error.errno in _GONE


def _walk(
    at: int, path: str, depth: int, shuns: Shuns, closed: Closed
) -> Iterator[tuple[int, str, str, os.stat_result]]:
    for name in names(at):
        try:
            about = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError as error:
            if is_gone(error):
                continue
            raise
        yield at, name, path + name, about
        if not depth or not stat.S_ISDIR(about.st_mode) or shuns(at, name, path + name):
            continue
        try:
            below, mode = _enter(name, at)
        except PermissionError:
            closed(path + name, about)
            continue
        except OSError as error:
            if is_gone(error):
                continue
            raise
        try:
            yield from _walk(below, f"{path}{name}/", depth - 1, shuns, closed)
        finally:
            _leave(below, mode)


def _enter(name: Path | str, at: int | None, need: int = 0o500) -> tuple[int, int | None]:
    """The descriptor of a folder, to look into it; the mode that was taken from it for that, None if none had to be."""
    if os.geteuid() == 0:
        return os.open(name, _FOLDER, dir_fd=at), None
    itself = os.open(name, _ITSELF | os.O_DIRECTORY, dir_fd=at)
    try:
        mode = stat.S_IMODE(os.fstat(itself).st_mode)
        is_shut = mode & need != need and os.fstat(itself).st_uid == os.geteuid()
        if is_shut:
            _link(itself).chmod(mode | 0o700)
        return os.open(_link(itself), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), mode if is_shut else None
    finally:
        os.close(itself)


def _leave(folder: int, mode: int | None) -> None:
    try:
        if mode is not None and stat.S_IMODE(os.fstat(folder).st_mode) == mode | 0o700:  # else it was changed meanwhile
            with contextlib.suppress(PermissionError):
                os.fchmod(folder, mode)
    finally:
        os.close(folder)


def _own(at: int, name: str, uid: int) -> None:
    """What has this name is looked at and owned by one descriptor: it cannot become another in between."""
    with _others():
        itself = os.open(name, _ITSELF, dir_fd=at)
        try:
            about = os.fstat(itself)
            if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                _replace(at, name, about, uid)
            else:
                os.chown(_link(itself), uid, uid)
        finally:
            os.close(itself)


def _unshare(folder: Path) -> None:
    """Replace this user's own files that have names elsewhere too; one with all its names within stays one."""
    inside = Counter((about.st_dev, about.st_ino) for *_, about in _with_names(folder))
    for parent, name, about in _with_names(folder) if inside else ():
        file = about.st_dev, about.st_ino
        if about.st_nlink > inside[file]:
            inside[file] -= 1
            with _others():
                _replace(parent, name, about, None)


@contextlib.contextmanager
def _others() -> Iterator[None]:
    """What has become something else meanwhile is left as it is: it is looked at when it is met again."""
    try:
        yield
    except OSError as error:
        if not is_gone(error) and not isinstance(error, IsADirectoryError):
            raise


def _with_names(folder: Path) -> Iterator[tuple[int, str, os.stat_result]]:
    """This user's own files that have several."""
    for parent, name, _, about in walk_tree(folder, depth=DEEPEST):
        if stat.S_ISREG(about.st_mode) and about.st_nlink > 1 and about.st_uid == os.geteuid():
            yield parent, name, about


def _replace(at: int, name: str, about: os.stat_result, uid: int | None) -> None:
    """By a copy of its own, owned by ``uid``."""
    source = open_file(name, at)
    copied = f".hudsim-copy-{os.urandom(8).hex()}"
    try:
        target = os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
        try:
            copy_bytes(source, target, about.st_size)
            if uid is not None:
                os.fchown(target, uid, uid)
            os.fchmod(target, stat.S_IMODE(about.st_mode) & 0o777)
            os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
            os.rename(copied, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(copied, dir_fd=at)
            raise
        finally:
            os.close(target)
    finally:
        os.close(source)


def _opened_anyway(name: str, at: int) -> int:
    """A file to read that its mode forbids to."""
    itself = os.open(name, _ITSELF, dir_fd=at)
    try:
        about = os.fstat(itself)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        _link(itself).chmod(0o400)
        try:
            return os.open(_link(itself), os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _link(itself).chmod(stat.S_IMODE(about.st_mode))
    finally:
        os.close(itself)


def _link(fd: int) -> Path:
    """A path to what it is open on, wherever that has gone."""
    return Path(f"/proc/self/fd/{fd}")


def _empty(at: int, top: int, depth: int, moved: Iterator[str]) -> bool:
    """Remove all in the folder ``at``; what is deeper than a stack should be moves up to ``top``. False: again."""
    is_empty = True
    for name in names(at):
        try:
            os.unlink(name, dir_fd=at)
            continue
        except (IsADirectoryError, PermissionError):
            pass
        except FileNotFoundError:
            continue
        with contextlib.suppress(FileNotFoundError):
            below = take_folder(name, at)
            try:
                if depth == _DEEP:
                    _move_up(name, at, top, moved)
                    is_empty = False
                    continue
                is_empty &= _empty(below, top, depth + 1, moved)
            finally:
                os.close(below)
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=at)
    return is_empty


def _move_up(name: str, at: int, top: int, moved: Iterator[str]) -> None:
    """Under a name that nothing has there."""
    for free in moved:
        try:
            os.rename(name, free, src_dir_fd=at, dst_dir_fd=top)
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            continue
        return
