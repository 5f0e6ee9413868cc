"""``solution``: where a solution's modules are found, and in which order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["Finder", "install"]


class Finder:
    """Finds the modules called ``names`` in ``roots`` and nowhere else."""

    def __init__(self, names: Sequence[str], roots: Sequence[str]) -> None:
        self._names, self._roots = frozenset(names), list(roots)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by the import system."""
        if path is not None or fullname not in self._names:
            return None
        spec = PathFinder.find_spec(fullname, self._roots)
        if spec is None:
            raise ModuleNotFoundError(f"the solution has no module {fullname!r}", name=fullname)
        return spec


def install(names: Sequence[str], roots: Sequence[str]) -> None:
    """The named modules are the solution's; what else it has comes last, so that its ``json.py`` shadows nothing."""
    sys.meta_path.insert(0, Finder(names, roots))
    sys.path.extend(roots)
