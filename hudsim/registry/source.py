"""``Source``: tasks by the name that people give them, and the file that declares where they run."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hudsim.errors import UsageError
from hudsim.registry.entry import Entry
from hudsim.registry.names import environments, find

if TYPE_CHECKING:
    from hudsim.eval.taskset import Taskset

__all__ = ["Source", "taskset"]

_DATA = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class Source:
    """Tasks and their environments.

    name
        As it was asked for.
    file
        The ``.py`` file, or the folder of them, that declares the environments: what
        :class:`~hudsim.eval.LocalRuntime` takes.
    """

    name: str
    taskset: Taskset
    file: Path


def taskset(source: str, *, env: Path | None = None) -> Source:
    """The tasks that ``source`` stands for.

    source
        A name of :func:`environments`; a ``.py`` file or a folder of them; a ``.json`` or ``.jsonl`` file; or
        ``module:attr`` or ``file.py:attr`` of a Taskset.
    env
        What declares the environments. None: the file that holds the tasks; for a data file what is beside it and
        declares environments of those names, else hudsim's own of those names.

    Raises :class:`~hudsim.errors.UnknownName` for a name that is not there, and :class:`~hudsim.errors.UsageError`
    for what holds no tasks or whose environments nobody declares.
    """
    tasks, home = _found(source)
    if len(tasks) == 0:
        raise UsageError(f"{source}: got no tasks, expected at least one")
    return Source(source, tasks, env or home or _home(Path(source).expanduser(), {task.env for task in tasks}))


def _found(source: str) -> tuple[Taskset, Path | None]:
    """The tasks and the file or folder that holds them. None: they are data."""
    from hudsim.eval.taskset import Taskset

    path = Path(source).expanduser()
    is_folder = os.path.isdir(path)  # noqa: PTH112 - Path raises for a name that is too long
    if source not in environments() and (is_folder or path.suffix in {".py", *_DATA}):
        return Taskset.from_file(path), None if path.suffix in _DATA else path
    given = Entry(source, source, "") if ":" in source else None
    entry = find(source, "environment", given, environments())
    found = entry.find()
    if not isinstance(found, Taskset):
        raise UsageError(f"environment {source} is a {type(found).__name__}; expected a Taskset")
    return found, _file_of(entry)


def _file_of(entry: Entry) -> Path:
    """The file that the target of an entry, which has been loaded, stands in."""
    where = entry.target.rpartition(":")[0]
    return Path(where if where.endswith(".py") else str(sys.modules[where].__file__))


def _home(data: Path, names: set[str]) -> Path:
    """What declares the environments ``names``: one file or folder."""
    homes = {name: _beside(data, name) or _bundled(name) for name in sorted(names)}
    missing = [name for name, home in homes.items() if home is None]
    if missing:
        raise UsageError(
            f"{data}: its tasks run in {', '.join(missing)}, which no .py file beside it declares by that name, nor is "
            "it one of hudsim's; say which file does: env= (--env FILE)"
        )
    files = {home for home in homes.values() if home is not None}
    folders = {file.parent for file in files}
    if len(files) == 1:
        return files.pop()
    if len(folders) == 1:
        return folders.pop()
    where = ", ".join(f"{name} ({home})" for name, home in homes.items())
    raise UsageError(f"{data}: its tasks run in environments of several folders: {where}; run them one by one")


def _beside(data: Path, name: str) -> Path | None:
    """The file beside ``data`` that declares the environment. It is read, not run."""
    return next((file for file in sorted(data.parent.glob("*.py")) if name in _declared_in(file)), None)


def _declared_in(file: Path) -> Iterator[str]:
    """The names in ``Environment("name", …)``, written out."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Environment":
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "name")]
            yield from (
                value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)
            )


def _bundled(name: str) -> Path | None:
    entry = environments().get(name)
    if entry is None:
        return None
    entry.find()
    return _file_of(entry)
