"""``tree``: walking, owning and removing folders that somebody hostile has filled."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["Shuns", "Use", "measure", "own_tree", "remove_tree", "walk_tree"]

_DEEP, _DEEPEST = 64, 128
_ENDLESS = 1 << 60
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Shuns = Callable[[int, str, str], bool]
"""Whether a folder is not entered: the descriptor of the one it is in, its name, its path from the top."""

Use = tuple[int, int]
"""Bytes on the disk, and number of files and folders."""


def walk_tree(
    folder: Path, *, depth: int = _DEEP, shuns: Shuns = lambda *_: False
) -> Iterator[tuple[int, str, str, os.stat_result]]:
    """Everything below ``folder``: (descriptor of the folder it is in, its name, its path from ``folder``, what it is).

    No link is followed. A folder comes before what is in it; below ``depth`` folders nothing is entered, nor what
    ``shuns`` says. What goes away meanwhile is left out.
    """
    with _opened(folder, None) as top:
        if top is not None:
            yield from _walk(top, "", depth, shuns)


def measure(folder: Path, *, most_files: int | None = None) -> Use:
    """What is in it. Stops counting once there is more than ``most_files``.

    Folders within more than 128 others count as endless: nobody looks into them.
    """
    size = count = 0
    for _, _, path, about in walk_tree(folder, depth=_DEEPEST):
        size += about.st_blocks * 512
        count += 1
        if stat.S_ISDIR(about.st_mode) and path.count("/") == _DEEPEST:
            size += _ENDLESS
        if most_files is not None and count > most_files:
            break
    return size, count


def own_tree(folder: Path, uid: int) -> None:
    """Give ``folder`` and all in it to the user ``uid``, and to its group."""
    os.chown(folder, uid, uid)
    for parent, name, _, about in walk_tree(folder, depth=_DEEPEST):
        if about.st_uid != uid or about.st_gid != uid:
            with contextlib.suppress(FileNotFoundError):
                os.chown(name, uid, uid, dir_fd=parent, follow_symlinks=False)


def remove_tree(folder: Path) -> None:
    """Remove it and all in it, however deep and whatever its modes. Nothing happens if it is not there."""
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(about.st_mode):
        folder.unlink(missing_ok=True)
        return
    moved = (f".hudsim-deep-{n}" for n in itertools.count())
    with contextlib.suppress(FileNotFoundError):
        while True:
            with contextlib.suppress(PermissionError):
                folder.chmod(0o700)
            top = os.open(folder, _FOLDER)
            try:
                is_empty = _empty(top, top, 0, moved)
            finally:
                os.close(top)
            if is_empty:
                folder.rmdir()
                return


def _walk(at: int, path: str, depth: int, shuns: Shuns) -> Iterator[tuple[int, str, str, os.stat_result]]:
    for name in _names(at):
        try:
            about = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError:
            continue
        yield at, name, path + name, about
        if depth and stat.S_ISDIR(about.st_mode) and not shuns(at, name, path + name):
            with _opened(name, at) as below:
                if below is not None:
                    yield from _walk(below, f"{path}{name}/", depth - 1, shuns)


def _empty(at: int, top: int, depth: int, moved: Iterator[str]) -> bool:
    """Remove all in the folder ``at``; what is deeper than a stack should be moves up to ``top``. False: again."""
    is_empty = True
    for name in _names(at):
        try:
            os.unlink(name, dir_fd=at)
            continue
        except (IsADirectoryError, PermissionError):
            pass
        except FileNotFoundError:
            continue
        with contextlib.suppress(FileNotFoundError):
            with contextlib.suppress(PermissionError):
                os.chmod(name, 0o700, dir_fd=at)
            if depth == _DEEP:
                os.rename(name, next(moved), src_dir_fd=at, dst_dir_fd=top)
                is_empty = False
                continue
            below = os.open(name, _FOLDER, dir_fd=at)
            try:
                is_empty &= _empty(below, top, depth + 1, moved)
            finally:
                os.close(below)
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=at)
    return is_empty


def _names(at: int) -> list[str]:
    try:
        return os.listdir(at)
    except OSError:
        return []


@contextlib.contextmanager
def _opened(name: Path | str, at: int | None) -> Iterator[int | None]:
    """None: it is no folder any more, or may not be read."""
    try:
        fd = os.open(name, _FOLDER, dir_fd=at)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)
