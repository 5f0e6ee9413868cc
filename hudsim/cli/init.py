"""``hudsim init``: a project of one's own, working from the start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from hudsim.cli.output import tell
from hudsim.errors import UnknownName, UsageError

__all__ = ["init"]

_TEMPLATES = ("blank", "coding", "robot")
_PLACEHOLDER = "my-project"  # every template is a whole project of this name
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NEXT = ("hudsim eval . oracle", "hudsim show last", "pytest")


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name: a new folder.")],
    *,
    template: Annotated[
        str, typer.Option("--template", "-t", metavar="|".join(_TEMPLATES), help="What it begins as.")
    ] = "blank",
) -> None:
    """Make a project: an environment, tasks and their tests.

    blank: tasks in words, with answers that can be checked. coding: a repository to be changed, graded by hidden tests.
    robot: a robot world, a policy for it, graded tasks.
    """
    if template not in _TEMPLATES:
        raise UnknownName("template", template, _TEMPLATES)
    folder = Path(name).expanduser()
    if not _NAME.fullmatch(folder.resolve().name):
        raise UsageError(
            f"got the project name {folder.name!r}, expected letters, digits, '-', '_' and '.' "
            "that begin and end with a letter or digit"
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} is there already; expected a new or empty folder")
    made = [_write(folder / place, text, folder) for place, text in _files(template)]
    tell(f"made {folder}:\n")
    for path in sorted(made):
        tell(f"  {path}")
    tell("\nNext:\n")
    for command in (f"cd {shlex.quote(str(folder))}", *_NEXT):
        tell(f"  {command}")


def _files(template: str) -> Iterator[tuple[PurePosixPath, str]]:
    """The places and texts of a template's files."""

    def walk(node: Traversable, place: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
        for child in node.iterdir():
            if child.is_dir():
                if not child.name.startswith("__"):
                    yield from walk(child, place / child.name)
            else:
                yield place / child.name, child.read_text(encoding="utf-8")

    yield from walk(files("hudsim.cli") / "templates" / template, PurePosixPath())


def _write(file: Path, text: str, folder: Path) -> Path:
    """Write one file of the project; its path within it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(_PLACEHOLDER, folder.resolve().name), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    return file.relative_to(folder)
