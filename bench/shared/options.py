"""``options``: the options that every benchmark takes, spelled the same."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["numbers", "options"]


def options(bench: str, description: str) -> argparse.ArgumentParser:
    """A parser with ``--quick``, ``--json`` and ``--out``; each benchmark adds its own."""
    parser = argparse.ArgumentParser(prog=f"hudsim bench {bench}", description=description)
    parser.add_argument("--quick", action="store_true", help="little of everything: for its function, not its numbers")
    parser.add_argument("--json", action="store_true", help="print one JSON document, no tables")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"write {bench}.json there, and pictures")
    return parser


def numbers(words: str) -> list[int]:
    """For ``type=``: whole numbers from 1, as in ``1,4,16``."""
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"got {words!r}, expected whole numbers from 1, as in 1,4,16")
    return found
