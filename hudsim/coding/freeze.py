"""``Frozen``: an agent's files as they were when all its processes had been killed."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hudsim.coding.tree import Shuns, copy_bytes, is_gone, open_file, remove_tree, walk_tree
from hudsim.errors import WorkspaceError

__all__ = ["Frozen", "freeze_tree", "is_no_room"]

MIB = 1 << 20
_TOOLS = frozenset({".git", ".venv", "__pycache__", "node_modules"})
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


@dataclass
class Frozen:
    """A copy on the host that no process of the agent's can reach.

    folder
        Where it is; whoever may read the host's own files may read it.
    files
        The copied files, as paths from there.
    skipped
        What was left out: (path, why); the first thousand.
    size
        Bytes copied.
    """

    folder: Path
    files: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0

    def skip(self, path: str, why: str) -> None:
        """Note what was left out, within bounds."""
        if len(self.skipped) < _MOST_SKIPPED:
            self.skipped.append((path, why))
        elif len(self.skipped) == _MOST_SKIPPED:
            self.skipped.append(("…", "more was left out"))

    def read(self, path: str) -> bytes:
        """A copied file's bytes. Raises :class:`~hudsim.errors.WorkspaceError` for one that was not copied."""
        if path not in self.files:
            why = next((why for left_out, why in self.skipped if left_out == path), "no such file")
            raise WorkspaceError(f"cannot read {path}: {why}")
        return (self.folder / path).read_bytes()

    def close(self) -> None:
        """Remove the copy. Idempotent."""
        remove_tree(self.folder)


def freeze_tree(root: Path, folder: Path, patterns: Sequence[str], *, most_files: int, most_bytes: int) -> Frozen:
    """Copy the regular files below ``root`` whose paths match a pattern (``**/*.py``, ``src/*``) into ``folder``.

    Links are not followed, nothing but files is opened, and all files are readable by all afterwards. What tools fill
    (``.git``, ``node_modules``, ``__pycache__``, ``.venv`` and other virtual environments) is left out, unless a
    pattern names that folder (``.git/**``). Of too many files those nearest to the top are taken.

    ``root`` must be at rest. Raises :class:`OSError` if the host's disk is full, or for another reason that is no doing
    of the tree's; nothing is left of the copy then.
    """
    frozen = Frozen(folder)
    chosen = _chosen(root, patterns, frozen, most_files=most_files, most_bytes=most_bytes)
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for parent, name, path, about in walk_tree(root, shuns=_shuns_tools(patterns)):
            if path in chosen:
                try:
                    frozen.size += _copy(parent, name, folder / path, about)
                except OSError as error:
                    if not is_gone(error) and error.errno not in _ITS_OWN:
                        raise
                    frozen.skip(path, error.strerror or str(error))
                else:
                    frozen.files.append(path)
    except BaseException:
        frozen.close()
        raise
    return frozen


def is_no_room(error: OSError) -> bool:
    """Whether a disk is full, or what a user may have of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _chosen(root: Path, patterns: Sequence[str], frozen: Frozen, *, most_files: int, most_bytes: int) -> set[str]:
    """The files to be copied: where there are too many, those nearest to the top. The rest ``frozen`` has skipped."""
    wanted = [_pattern(pattern) for pattern in patterns]
    found = list[tuple[int, str]]()
    tree = walk_tree(
        root,
        shuns=_shuns_tools(patterns, frozen),
        closed=lambda path, _: frozen.skip(path, "a folder that cannot be opened"),
    )
    for _, _, path, about in tree:
        if stat.S_ISDIR(about.st_mode):
            if path.count("/") == _DEEPEST:
                frozen.skip(path, f"a folder within {_DEEPEST} others")
        elif any(pattern.fullmatch(path) for pattern in wanted):
            if stat.S_ISREG(about.st_mode):
                found.append((about.st_size, path))
            else:
                frozen.skip(path, _KINDS.get(stat.S_IFMT(about.st_mode), "a device"))
    chosen, left = set[str](), most_bytes
    for size, path in sorted(found, key=lambda one: one[1].count("/")):
        if size > left:
            frozen.skip(path, f"more than {most_bytes:,} bytes")
        elif len(chosen) >= most_files:
            frozen.skip(path, f"more than {most_files:,} files")
        else:
            chosen.add(path)
            left -= size
    return chosen


def _shuns_tools(patterns: Sequence[str], frozen: Frozen | None = None) -> Shuns:
    """Of the folders that tools fill those that no pattern names; ``frozen`` has skipped them."""
    named = {part for pattern in patterns for part in pattern.split("/")}

    def shuns(parent: int, name: str, path: str) -> bool:
        is_tools = name not in named and _is_tools(parent, name)
        if is_tools and frozen is not None:
            frozen.skip(path, "a folder that tools fill, and no pattern names")
        return is_tools

    return shuns


def _is_tools(parent: int, name: str) -> bool:
    """Whether it is a folder of :data:`_TOOLS`, or a virtual environment of whatever name."""
    if name in _TOOLS:
        return True
    try:
        os.stat(f"{name}/pyvenv.cfg", dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if is_gone(error):
            return False
        raise
    return True


_DEEPEST = 64
_ITS_OWN = frozenset({errno.EPERM, errno.ENAMETOOLONG})
"""What a file brings about by how it is, and where, beside what is gone."""
_MOST_SKIPPED = 1000


def _pattern(pattern: str) -> re.Pattern[str]:
    """``**/`` stands for any folders, or none; ``*`` and ``?`` stand for no ``/``."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(_WILD.get(part) or re.escape(part) for part in parts), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _copy(parent: int, name: str, to: Path, expected: os.stat_result) -> int:
    """One file, which must still be the one that was looked at. Its size."""
    source = open_file(name, parent)
    try:
        about = os.fstat(source)
        if about.st_ino != expected.st_ino:
            raise FileNotFoundError(errno.ENOENT, "changed while it was looked at")
        to.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        mode = 0o755 if expected.st_mode & 0o100 else 0o644
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            copy_bytes(source, target, about.st_size)
        finally:
            os.close(target)
        os.utime(to, ns=(about.st_mtime_ns, about.st_mtime_ns))
        return about.st_size
    finally:
        os.close(source)
