"""What commands print with: JSON and tables on stdout, words about them on stderr."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Literal, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "columns",
    "emit_json",
    "errors",
    "fitting",
    "forgive",
    "printable",
    "reserve_stdout",
    "say",
    "stdout",
    "tell",
]

_ANY_WIDTH = 10_000  # a file or a pipe has no edge to fold a line at

_reserved: list[TextIO] = []

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\))")
"""What a terminal obeys: a colour or a move (CSI), a title, a link or the clipboard (OSC and its like)."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All other controls but tab and line feed, and what turns the order of letters around."""


def printable(words: str) -> str:
    """``words`` without what a terminal would obey, and with ``?`` for halves of letters, which no file can hold.

    For all that is printed and not ours: an agent's error, an answer, a name.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", words)).encode("utf-8", "replace").decode()


def forgive() -> None:
    """Have both streams print ``?`` for a letter that their encoding has not, rather than raise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def reserve_stdout() -> None:
    """From now on stdout is for :func:`emit_json` alone: what a world or policy prints goes to stderr.

    For the rest of the process, which is the command's own: they may print when it ends, too.
    """
    _reserved[:] = [sys.stdout]
    if _descriptor(sys.stdout) == 1:  # what is written in C and by child processes passes Python's stdout by
        _reserved[:] = [os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors="replace")]
        os.dup2(2, 1)
    sys.stdout = sys.stderr


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def emit_json(document: Any) -> None:
    """One JSON document on stdout. Numbers that JSON has not (nan, infinities) become null.

    What a terminal would obey, and what the stream's encoding cannot hold, is escaped as JSON does it.
    """
    stream = _reserved[0] if _reserved else sys.stdout
    is_utf = (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf8sig")
    words = json.dumps(_plain(document), indent=2, ensure_ascii=not is_utf, allow_nan=False)
    typer.echo(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", words), file=stream)


_UNSAFE = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # json escapes those below 0x20


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def say(words: str) -> None:
    """A line on stderr, whoever's words are in it."""
    typer.echo(printable(words), err=True)


def tell(words: str) -> None:
    """A line on stdout, whoever's words are in it."""
    typer.echo(printable(words))


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

    Titles are shown if there are any that do not begin with ``_``. What is wider than its column is folded.
    """
    from rich.table import Table

    shown = any(not title.startswith("_") for title in titles)
    table = Table(box=None, show_header=shown, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for title, side in titles.items():
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        table.add_column(title.lstrip("_") if shown else "", justify=justify, overflow="fold")
    return table


def fitting(console: Console, *tables: Table) -> Table:
    """The first of ``tables`` that ``console`` is wide enough for, else the last."""
    anywhere = console.options.update(max_width=_ANY_WIDTH)
    wide = (console.measure(table, options=anywhere).maximum for table in tables)
    return next((table for table, width in zip(tables, wide, strict=True) if width <= console.width), tables[-1])
