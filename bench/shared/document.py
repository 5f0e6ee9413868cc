"""A benchmark's document: what it was measured on, and where it goes: tables or stdout, a folder, pictures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hudsim import __version__
from hudsim.errors import HudsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Draw", "cores", "deliver", "head", "heading", "packages", "screen"]

Draw = Callable[[dict[str, Any]], "Figure"]
"""Makes a document's picture; called only where matplotlib is installed."""


_WIDTH = 150  # where no terminal says it


def head(bench: str, packages: Iterable[str] = ()) -> dict[str, Any]:
    """How each document begins: which benchmark, the machine, and the versions of what it rests on."""
    return {
        "bench": bench,
        "hudsim": __version__,
        "python": platform.python_version(),
        "machine": f"{_processor()}, {platform.system()} {platform.release()}, {cores()} cores",
        "load": round(os.getloadavg()[0], 2),
        "versions": {name: version(name) for name in ("numpy", *packages)},
    }


def heading(document: dict[str, Any]) -> str:
    """A line about the machine, for above a table."""
    quick = ", quick: its numbers say little" if document.get("quick") else ""
    return f"{document['machine']}, load {document['load']:g} at the start, Python {document['python']}{quick}"


def packages(versions: dict[str, str]) -> str:
    """``versions`` in words."""
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def screen() -> Console:
    """Stdout, without colours of rich's own choice."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)


def cores() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def deliver(
    document: dict[str, Any],
    options: argparse.Namespace,
    show: Callable[[dict[str, Any], Console], None],
    draw: Draw | None = None,
) -> None:
    """Keep the document in the folder of ``--out`` with its picture, and print it as ``--json`` asks.

    That of a ``--quick`` run says so (``"quick": true``). Without matplotlib there is no picture, and stderr says so.
    Raises :class:`~hudsim.errors.HudsimError` for what could not be written; it has been printed all the same.
    """
    if options.quick:
        document["quick"] = True
    words = json.dumps(document, indent=None if "series" in document else 1)
    try:  # kept first: whoever was to read what is printed may have hung up
        if options.out is not None:
            _keep(document, words, options.out, draw)
    finally:
        if options.json:
            print(words)
        else:
            console = screen()
            console.print(heading(document), markup=False)
            console.print(f"hudsim {document['hudsim']}, {packages(document['versions'])}", markup=False)
            show(document, console)


def _keep(document: dict[str, Any], words: str, folder: Path, draw: Draw | None) -> None:
    file = folder / f"{document['bench']}.json"
    try:
        file.write_text(words + "\n")
        if draw is not None:
            _picture(document, draw, file := file.with_suffix(".png"))
    except OSError as error:
        raise HudsimError(
            f"{file} could not be written whole ({error.strerror or error}); what was measured is printed"
        ) from None


def _picture(document: dict[str, Any], draw: Draw, file: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        print("no picture: matplotlib is not installed (pip install 'hudsim[bench]')", file=sys.stderr)
        return
    mpl.use("agg")
    figure = draw(document)
    figure.savefig(file, dpi=110)


def _processor() -> str:
    """The processor by its maker's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
