"""What commands print with: JSON and tables on stdout, words about them on stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["columns", "emit_json", "errors", "reserve_stdout", "say", "stdout"]

_ANY_WIDTH = 10_000  # a file or a pipe has no edge to fold a line at

_reserved: list[TextIO] = []


def reserve_stdout() -> None:
    """From now on stdout is for :func:`emit_json` alone: what a world or policy prints goes to stderr.

    For the rest of the process, which is the command's own: they may print when it ends, too.
    """
    _reserved[:] = [sys.stdout]
    if _descriptor(sys.stdout) == 1:  # what is written in C and by child processes passes Python's stdout by
        _reserved[:] = [os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding)]
        os.dup2(2, 1)
    sys.stdout = sys.stderr


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def emit_json(document: Any) -> None:
    """One JSON document on stdout. Numbers that JSON has not (nan, infinities) become null."""
    words = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    typer.echo(words, file=_reserved[0] if _reserved else None)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def say(words: str) -> None:
    """A line on stderr."""
    typer.echo(words, err=True)


def stdout() -> Console:
    """A console on stdout."""
    return _console(stderr=False)


def errors() -> Console:
    """A console on stderr."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal:
        return console

    class Piped(Console):
        """Folds no line, and pads none."""

        def print(self, *objects: Any, **options: Any) -> None:
            with self.capture() as said:
                super().print(*objects, **options)
            typer.echo("\n".join(line.rstrip(" ") for line in said.get().split("\n")), nl=False, err=stderr)

    return Piped(stderr=stderr, highlight=False, emoji=False, width=_ANY_WIDTH)


def columns(**titles: str) -> Table:
    """A table without lines: for each column its title and whether it stands ``left`` or ``right``.

    Titles are shown if there are any that do not begin with ``_``.
    """
    from rich.table import Table

    shown = any(not title.startswith("_") for title in titles)
    table = Table(box=None, show_header=shown, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for title, side in titles.items():
        table.add_column(title.lstrip("_") if shown else "", justify="right" if side == "right" else "left")
    return table
