"""``scratch``: a folder on the host that does not outlive its use, nor for long its process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hudsim.coding.place import Place
from hudsim.coding.tree import remove_tree

__all__ = ["scratch"]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A new empty folder, of mode 0700. What a killed process leaves of it is swept with the rest of its."""
    folder = Place.mine().room("repo")
    try:
        yield folder
    finally:
        remove_tree(folder)
