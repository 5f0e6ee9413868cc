"""``options``: the options that every benchmark takes, spelled the same."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hudsim.errors import UsageError

__all__ = ["factor", "numbers", "options"]


class _Options(argparse.ArgumentParser):
    """Makes the folder of ``--out``, and tries it: what is measured in minutes is not lost for want of a place."""

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        asked = super().parse_args(args, namespace)
        if asked.out is not None:
            _try(asked.out / f"{self.prog.rpartition(' ')[2]}.json")
        return asked


def _try(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        was_there = file.exists()
        file.open("ab").close()
        if not was_there:
            file.unlink()
    except OSError as error:
        words = f"got {file.parent}, expected a folder where {file.name} can be written ({error.strerror})"
        raise UsageError(f"--out: {words}") from None


def options(bench: str, description: str) -> argparse.ArgumentParser:
    """A parser with ``--quick``, ``--json`` and ``--out``; each benchmark adds its own.

    It raises :class:`~hudsim.errors.UsageError` for a folder that cannot be written to.
    """
    parser = _Options(prog=f"hudsim bench {bench}", description=description)
    parser.add_argument("--quick", action="store_true", help="little of everything: for its function, not its numbers")
    parser.add_argument("--json", action="store_true", help="print one JSON document, no tables")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"write {bench}.json there, and pictures")
    return parser


def factor(words: str) -> float:
    """For ``type=``: a finite number above 0."""
    try:
        found = float(words)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"got {words!r}, expected a finite number above 0")
    return found


def numbers(words: str) -> list[int]:
    """For ``type=``: whole numbers from 1, as in ``1,4,16``."""
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"got {words!r}, expected whole numbers from 1, as in 1,4,16")
    return found
