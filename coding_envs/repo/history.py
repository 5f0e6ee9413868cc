"""``Commit``: one step of the repository's history, and the repository as it was then."""

from __future__ import annotations

import difflib
import functools
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hudsim.coding_envs.repo.scratch import scratch
from hudsim.errors import UnknownName, UsageError

__all__ = ["Commit", "history"]

_HERE = Path(__file__).parent
_GIT_S = 30.0
_ISSUE = "issue.md"


@dataclass(frozen=True)
class Commit:
    """What a commit changed. ``commits/`` has a folder for each, which holds its new files and those it changed.

    index
        Its place in the history, from 0.
    name
        Its folder's.
    author, date, message
        As git has them.
    changed
        Paths and whole texts.
    issue
        What was asked for. None: nobody asked, and it is no task.
    """

    index: int
    name: str
    author: str
    date: str
    message: str
    changed: Mapping[str, str]
    issue: str | None

    @classmethod
    def of(cls, name: str) -> Commit:
        """The commit of this name. Raises :class:`~hudsim.errors.UnknownName` for one that is no task."""
        asked = {commit.name: commit for commit in history() if commit.issue is not None}
        if name not in asked:
            raise UnknownName("issue in repo", name, asked)
        return asked[name]

    @property
    def tests(self) -> dict[str, str]:
        """The test files that it brought: those that are hidden while it is still to be made."""
        return {path: text for path, text in self.changed.items() if path.startswith("tests/")}

    @property
    def before(self) -> dict[str, str]:
        """The whole repository just before it: paths and texts."""
        tree: dict[str, str] = {}
        for commit in history()[: self.index]:
            tree |= commit.changed
        return tree

    @property
    def patch(self) -> str:
        """What it changed beside tests, as a unified diff: the reference."""
        before = self.before
        return "".join(
            line
            for path, text in sorted(self.changed.items())
            if path not in self.tests
            for line in difflib.unified_diff(
                before.get(path, "").splitlines(keepends=True),
                text.splitlines(keepends=True),
                f"a/{path}" if path in before else "/dev/null",
                f"b/{path}",
            )
        )

    def bundle(self) -> bytes:
        """A git bundle of the repository just before it: nothing that came later is in it, reachable or not.

        The same bytes of history, and so the same commit ids, everywhere. Raises
        :class:`~hudsim.errors.UsageError` where there is no git.
        """
        return _bundle(self.index)


@functools.cache
def history() -> tuple[Commit, ...]:
    """All commits, the oldest first."""
    rows = json.loads((_HERE / "commits.json").read_text(encoding="utf-8"))
    return tuple(_commit(index, row) for index, row in enumerate(rows))


def _commit(index: int, row: Mapping[str, str]) -> Commit:
    folder = _HERE / "commits" / row["folder"]
    files = {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in sorted(_files(folder))}
    issue = files.pop(_ISSUE, None)
    return Commit(index, row["folder"], row["author"], row["date"], row["message"], files, issue)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


@functools.cache
def _bundle(count: int) -> bytes:
    """Of the first ``count`` commits."""
    stream = "".join(_words(commit) for commit in history()[:count])
    with scratch() as folder:
        _git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
        _git(folder, "fast-import", "--quiet", given=stream.encode())
        return _git(folder, "bundle", "create", "-", "main")


def _words(commit: Commit) -> str:
    """A commit as ``git fast-import`` reads it."""
    when = datetime.strptime(commit.date, "%Y-%m-%d %H:%M:%S %z")
    at = f"{when.timestamp():.0f} {when:%z}"
    lines = [
        "commit refs/heads/main",
        f"mark :{commit.index + 1}",
        f"author {commit.author} {at}",
        f"committer {commit.author} {at}",
        _data(f"{commit.message}\n"),
        *([f"from :{commit.index}"] if commit.index else []),
        *(f"M 100644 inline {path}\n{_data(text)}" for path, text in commit.changed.items()),
    ]
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, input=given, capture_output=True, env=own, timeout=_GIT_S, check=False)
    except FileNotFoundError:
        raise UsageError("repo: git is not installed here; its tasks begin with a git repository") from None
    if done.returncode != 0:
        raise UsageError(f"repo: git {words[0]} ended with {done.returncode}: {done.stderr.decode().strip()}")
    return done.stdout
