"""``Frozen``: an agent's files as they were when all its processes had been killed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hudsim.coding.tree import Shuns, remove_tree, walk_tree

__all__ = ["Frozen", "freeze_tree"]

MIB = 1 << 20
_PIECE = 1 << 20
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
        What was left out: (path, why).
    size
        Bytes copied.
    """

    folder: Path
    files: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0

    def close(self) -> None:
        """Remove the copy. Idempotent."""
        remove_tree(self.folder)


def freeze_tree(root: Path, folder: Path, patterns: Sequence[str], *, most_files: int, most_bytes: int) -> Frozen:
    """Copy the regular files below ``root`` whose paths match a pattern (``**/*.py``, ``src/*``) into ``folder``.

    Links are not followed, nothing but files is opened, and all files are readable by all afterwards. What tools fill
    (``.git``, ``node_modules``, ``__pycache__``, ``.venv`` and other virtual environments) is left out, unless a
    pattern names that folder (``.git/**``).
    """
    frozen = Frozen(folder)
    wanted = [_pattern(pattern) for pattern in patterns]
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for parent, name, path, about in walk_tree(root, shuns=_shuns_tools(patterns, frozen.skipped)):
        if stat.S_ISDIR(about.st_mode):
            if path.count("/") == _DEEPEST:
                frozen.skipped.append((path, f"a folder within {_DEEPEST} others"))
            continue
        if not any(pattern.fullmatch(path) for pattern in wanted):
            continue
        if not stat.S_ISREG(about.st_mode):
            frozen.skipped.append((path, _KINDS.get(stat.S_IFMT(about.st_mode), "a device")))
        elif frozen.size + about.st_size > most_bytes:
            frozen.skipped.append((path, f"more than {most_bytes:,} bytes"))
        elif len(frozen.files) >= most_files:
            frozen.skipped.append((path, f"more than {most_files:,} files"))
        else:
            try:
                frozen.size += _copy(parent, name, folder / path, about)
            except OSError as error:
                frozen.skipped.append((path, error.strerror or str(error)))
            else:
                frozen.files.append(path)
        if len(frozen.skipped) > _MOST_SKIPPED:
            frozen.skipped[-1] = ("…", "more was left out")
            break
    return frozen


def _shuns_tools(patterns: Sequence[str], skipped: list[tuple[str, str]]) -> Shuns:
    """Of the folders that tools fill those that no pattern names; they are added to ``skipped``."""
    named = {part for pattern in patterns for part in pattern.split("/")}

    def shuns(parent: int, name: str, path: str) -> bool:
        is_tools = name not in named and _is_tools(parent, name)
        if is_tools:
            skipped.append((path, "a folder that tools fill, and no pattern names"))
        return is_tools

    return shuns


def _is_tools(parent: int, name: str) -> bool:
    """Whether it is a folder of :data:`_TOOLS`, or a virtual environment of whatever name."""
    if name in _TOOLS:
        return True
    try:
        os.stat(f"{name}/pyvenv.cfg", dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return True


_DEEPEST = 64
_MOST_SKIPPED = 1000


def _pattern(pattern: str) -> re.Pattern[str]:
    """``**/`` stands for any folders, or none; ``*`` and ``?`` stand for no ``/``."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(_WILD.get(part) or re.escape(part) for part in parts), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _copy(parent: int, name: str, to: Path, expected: os.stat_result) -> int:
    """One file, which must still be the one that was looked at. Its size."""
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        about = os.fstat(source)
        if not stat.S_ISREG(about.st_mode) or about.st_ino != expected.st_ino:
            raise OSError("changed while it was looked at")
        to.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        mode = 0o755 if about.st_mode & 0o100 else 0o644
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            left = about.st_size
            while left and (sent := os.copy_file_range(source, target, min(left, _PIECE))):
                left -= sent
        finally:
            os.close(target)
        os.utime(to, ns=(about.st_mtime_ns, about.st_mtime_ns))
        return about.st_size
    finally:
        os.close(source)
