"""What commands print with: JSON and tables on stdout, words about them on stderr."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["columns", "emit_json", "errors", "say", "stdout"]

_ANY_WIDTH = 10_000  # a file or a pipe has no edge to fold a line at


def emit_json(document: Any) -> None:
    """One JSON document on stdout. Numbers that JSON has not (nan, infinities) become null."""
    typer.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


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

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _ANY_WIDTH
    return console


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
