"""``Changes``: how the files of a folder differ from what they were."""

from __future__ import annotations

import difflib
import os
import stat
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudsim.coding.tree import is_gone, walk_tree

__all__ = ["Changes"]

MIB = 1 << 20
_TEXT = 256 << 10
"""Bytes of a file up to which its text is kept and compared."""
_MOST = 1000
_DIFFS = 1 * MIB
_LINES = 5000
"""Of a file, up to which it is compared: what somebody hostile writes takes a time that is quadratic in that."""
_COMPARE_S = 2.0
_SECRET = (".env", ".pem", ".key", "id_rsa", "id_ed25519")
_NOISE = {"__pycache__", ".git", ".pytest_cache", "node_modules", ".venv", ".mypy_cache", ".ruff_cache"}


@dataclass(frozen=True, slots=True)
class _Seen:
    mark: tuple[int, int, int]
    size: int
    mtime_ns: int
    text: bytes | None


class Changes:
    """Of ``root``, since this was made. Blocks for a walk through it: not on the event loop.

    Caches and version control's own folders are left out; of what looks like a secret no text is kept. ``kept``: bytes
    of all texts that are; a file beyond that has no diff.
    """

    def __init__(self, root: Path, *, kept: int = 32 * MIB) -> None:
        self._root = root
        self._kept = kept
        self._began_s = time.monotonic()
        self._first_seen: dict[tuple[str, tuple[int, int, int] | None], float] = {}
        self._guard = threading.Lock()
        self._left = kept
        self._before = self._looked({})
        self._now = self._before

    def now(self, *, most: int = _MOST, diffs: int = _DIFFS) -> dict[str, Any]:
        """``{"changes": […], "left_out": n}``, plain JSON; the changes by path. See ``filetracking/1``.

        ``most`` files are told of. What would be more than ``diffs`` characters in all, or takes long to compare, is
        told without its diff.
        """
        with self._guard:
            self._left = self._kept
            self._now = now = self._looked({**self._before, **self._now})
            before = self._before
            paths = sorted(path for path in {**before, **now} if before.get(path) != now.get(path))
            until_s, found = time.monotonic() + _COMPARE_S, []
            for path in paths[:most]:
                change = self._change(path, before.get(path), now.get(path), compare=time.monotonic() < until_s)
                size = len(change["diff"] or "")
                found.append(change if size <= diffs else {**change, "diff": None})
                diffs -= size if size <= diffs else 0
            return {"changes": found, "left_out": max(0, len(paths) - most)}

    def _change(self, path: str, before: _Seen | None, now: _Seen | None, *, compare: bool) -> dict[str, Any]:
        kind = "added" if before is None else "removed" if now is None else "modified"
        key = (path, None if now is None else now.mark)
        seen_s = self._first_seen.setdefault(key, time.monotonic() - self._began_s)
        shown = path.encode(errors="surrogateescape").decode(errors="replace")
        return {
            "path": shown,
            "change": kind,
            "size": None if now is None else now.size,
            "mtime_ns": None if now is None else now.mtime_ns,
            "seen_s": round(seen_s, 3),
            "diff": _diff(shown, before, now) if compare else None,
        }

    def _looked(self, known: dict[str, _Seen]) -> dict[str, _Seen]:
        """What is there; the text of what has not been touched is not read again."""
        found = {}
        for parent, name, path, about in walk_tree(self._root):
            if not stat.S_ISREG(about.st_mode) or not _NOISE.isdisjoint(path.split("/")):
                continue
            mark = (about.st_ino, about.st_ctime_ns, about.st_size)
            seen = known.get(path)
            if seen is None or seen.mark != mark:
                text = None if _is_secret(name) else self._text(parent, name, about.st_size)
                seen = _Seen(mark, about.st_size, about.st_mtime_ns, text)
            found[path] = seen
        return found

    def _text(self, parent: int, name: str, size: int) -> bytes | None:
        if size > _TEXT or size > self._left:
            return None
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            if is_gone(error) or isinstance(error, PermissionError):
                return None
            raise
        with os.fdopen(fd, "rb") as file:
            data = file.read(_TEXT + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b"\0"
        if b"\0" in data or len(data) > _TEXT:
            return None
        self._left -= len(data)
        return data


def _is_secret(name: str) -> bool:
    return name.startswith(".env") or name.endswith(_SECRET)


def _diff(path: str, before: _Seen | None, now: _Seen | None) -> str | None:
    old, new = (b"" if seen is None else seen.text for seen in (before, now))
    if old is None or new is None:
        return None
    lines = [text.decode(errors="replace").splitlines(keepends=True) for text in (old, new)]
    if max(map(len, lines)) > _LINES:
        return None
    from_name = "/dev/null" if before is None else f"a/{path}"
    to_name = "/dev/null" if now is None else f"b/{path}"
    compared = difflib.unified_diff(lines[0], lines[1], from_name, to_name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in compared)
