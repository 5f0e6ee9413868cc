"""Words that several commands share, and how ``key=value`` is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hudsim.cli.output import reserve_stdout
from hudsim.errors import SimFailed, UsageError

__all__ = [
    "AsJson",
    "Cameras",
    "Mode",
    "Rate",
    "Runs",
    "Seed",
    "Settings",
    "Watchdog",
    "World",
    "blamed",
    "read_encodings",
    "read_settings",
    "typed",
]

_MODES = ("lockstep", "paced", "realtime")


def _mode(word: str) -> str:
    if word not in _MODES:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(map(repr, _MODES))}.")
    return word


def _as_json(asked: bool) -> bool:
    if asked:
        reserve_stdout()
    return asked


World = Annotated[
    str,
    typer.Argument(
        metavar="WORLD", help="A name from `hudsim list`, gym:ID, mjcf:FILE.xml, module:attr, file.py:attr or ws://…"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="An argument of the world or its task; VALUE is JSON or a word."),
]
Cameras = Annotated[
    bool | None,
    typer.Option(
        "--cameras/--no-cameras",
        "--camera/--no-camera",
        help="Ask the world for cameras, or do without.",
        show_default="as the world has it",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(parser=_mode, metavar="|".join(_MODES), help="How time passes.", show_default="the world's own"),
]
Rate = Annotated[
    float | None, typer.Option(metavar="HZ", min=0.001, max=1e6, help="Control rate.", show_default="the world's own")
]
Seed = Annotated[int, typer.Option(metavar="S", min=0, help="The first episode's; the next has the next.")]
Watchdog = Annotated[
    float, typer.Option(metavar="S", min=0.1, max=1e6, help="Seconds that a step may take before the world has hung.")
]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where jobs are kept.")]
AsJson = Annotated[bool, typer.Option("--json", callback=_as_json, help="Print one JSON document on stdout.")]


def read_settings(words: Iterable[str] | None) -> dict[str, Any]:
    """``key=value`` words as a dict; a value that is not JSON is the word itself.

    Raises :class:`~hudsim.errors.UsageError` for a word without ``=`` and for a key given twice.
    """
    settings: dict[str, Any] = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"got {word!r}, expected KEY=VALUE, as in width=128")
        if key in settings:
            raise UsageError(f"{key} is set twice: {json.dumps(settings[key])} and {value}")
        try:
            settings[key] = json.loads(value)
        except (ValueError, RecursionError):  # no JSON, or none that can be read
            settings[key] = value
    return settings


def read_encodings(words: Iterable[str] | None) -> dict[str, str]:
    """``camera=encoding`` words as a dict; an encoding alone is for all cameras, ``*``.

    Raises :class:`~hudsim.errors.UsageError` for what is no encoding and for a camera given twice.
    """
    from hudsim.contract.encoding import PATTERN

    encodings: dict[str, str] = {}
    for word in words or []:
        camera, _, encoding = word.rpartition("=")
        if re.fullmatch(PATTERN, encoding) is None:
            raise UsageError(f"--encode {word}: got {encoding!r}, expected raw, jpeg or jpeg:QUALITY (1 to 100)")
        if (camera or "*") in encodings:
            raise UsageError(f"--encode {word}: {camera or 'all cameras'} had an encoding already")
        encodings[camera or "*"] = encoding
    return encodings


def typed(context: typer.Context) -> Iterator[tuple[str, str, Any]]:
    """What was given on the command line, as (option's first word, parameter's name, value); "" for an argument."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = parameter.opts[0] if parameter.param_type_name == "option" else ""
            yield option, name, context.params[name]


@contextmanager
def blamed(world: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Around what makes ``world``: a TypeError or ValueError of its maker is put down to ``settings``.

    Raises :class:`~hudsim.errors.UsageError` that names them in its place; without settings it stays as it is.
    """
    try:
        yield
    except SimFailed as error:
        raised = re.match(r"the bridge raised ((?:Type|Value)Error: .*)", error.message, re.DOTALL)
        if not settings or raised is None:
            raise
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
        raise UsageError(f"{world} cannot be made with {given}: {raised[1]}") from error
