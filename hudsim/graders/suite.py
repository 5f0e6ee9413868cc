"""``Suite``: the hidden tests as they lie on the host, and in which way each file of them is run."""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hudsim.errors import UsageError

__all__ = ["Suite", "Way", "expected_ids"]

Way = Literal["separate", "same"]
_WAYS = ("separate", "same")
_LEFT_OUT = {"__pycache__", ".git", ".pytest_cache", ".hypothesis"}


@dataclass(frozen=True)
class Suite:
    """
    folder
        Where they lie. A single file's is the folder that it is in.
    files
        All that is copied into the sandbox, relative.
    ways
        Of each test file, by its relative path.
    """

    folder: Path
    files: tuple[str, ...]
    ways: Mapping[str, Way]

    @classmethod
    def read(cls, tests: Path | str, process: Way | Mapping[str, Way]) -> Suite:
        """``tests``: a folder, all of which is copied, or one file. ``process``: how each test file is run.

        Raises :class:`~hudsim.errors.UsageError` if there is no test file, or a way is none.
        """
        path = Path(tests)
        if not path.exists():
            raise UsageError(f"tests: got {path}, expected a folder or a file; there is none")
        folder = path if path.is_dir() else path.parent
        files = sorted(_files(path)) if path.is_dir() else [path.name]
        patterns = {"*": process} if isinstance(process, str) else dict(process)
        for way in patterns.values():
            if way not in _WAYS:
                raise UsageError(f"process: got {way!r}, expected {' or '.join(_WAYS)}")
        ways = {file: _way(file, patterns) for file in files if not path.is_dir() or _is_test(file)}
        if not ways:
            raise UsageError(f"tests: {path} holds no test_*.py or *_test.py: no test is no grade")
        return cls(folder, tuple(files), ways)

    def of(self, way: Way) -> list[str]:
        """The test files that are run in ``way``."""
        return [file for file, its in self.ways.items() if its == way]

    def copy(self, to: Path, changed: Mapping[str, str]) -> None:
        """Into the folder ``to``, readable for everybody; ``changed`` files, which may be new, hold that text."""
        to.mkdir()
        for file in {*self.files, *changed}:
            target = to / file
            target.parent.mkdir(parents=True, exist_ok=True)
            data = changed[file].encode() if file in changed else (self.folder / file).read_bytes()
            target.write_bytes(data)
            target.chmod(0o644)
        for folder, _, _ in os.walk(to):
            Path(folder).chmod(0o755)

    def imports(self, packages: Sequence[str]) -> list[str]:
        """The modules of the standard library and of ``packages`` that its files are seen to import."""
        found = dict.fromkeys(
            name for file in self.files if file.endswith(".py") for name in _imported(self.folder / file)
        )
        return [name for name in found if name.partition(".")[0] in {*sys.stdlib_module_names, *packages}]

    def stems(self, file: str) -> list[str]:
        """The ids, without parameters, of the tests that can be seen in a file without running it."""
        try:
            tree = ast.parse((self.folder / file).read_bytes())
        except SyntaxError as error:
            raise UsageError(f"tests: {self.folder / file} is no Python: {error}") from None
        return [f"{file}::{name}" for name in _names(tree.body)]


def expected_ids(expected: Sequence[str] | Path | None, suite: Suite) -> list[str] | None:
    """The ids that must pass, from a list, or a file with a JSON list or one a line. None stays None.

    Raises :class:`~hudsim.errors.UsageError` for an empty list, an id twice, and an id of a file that is not there.
    """
    if expected is None:
        return None
    if isinstance(expected, Path):
        text = expected.read_text()
        expected = json.loads(text) if text.lstrip().startswith("[") else text.split("\n")
    ids = [line for line in expected if line.strip()]
    if not ids:
        raise UsageError("expected: got no test ids, which nothing could fail; expected at least one")
    if len(set(ids)) < len(ids):
        raise UsageError(f"expected: got {next(one for one in ids if ids.count(one) > 1)} more than once")
    for one in ids:
        if one.partition("::")[0] not in suite.ways:
            raise UsageError(f"expected: got {one!r}, expected FILE::TEST; there are the files {', '.join(suite.ways)}")
    return ids


def _files(folder: Path) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            path = Path(where, name)
            if stat.S_ISREG(path.stat().st_mode) and path.suffix != ".pyc":
                yield path.relative_to(folder).as_posix()


def _imported(path: Path) -> Iterator[str]:
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_test(file: str) -> bool:
    name = file.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, "test_*.py") or fnmatch.fnmatchcase(name, "*_test.py")


def _way(file: str, patterns: Mapping[str, Way]) -> Way:
    for pattern, way in patterns.items():
        if fnmatch.fnmatchcase(file, pattern):
            return way
    return "separate"


def _names(body: Sequence[ast.stmt], before: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield before + node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _names(node.body, f"{before}{node.name}::")
