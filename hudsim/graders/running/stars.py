"""``stars``: what ``from calc import *`` gives a file of tests: it is not the solution that says what names mean."""

from __future__ import annotations

import builtins
import importlib
import sys

__all__ = ["take"]


def take(module: str, used: tuple[str, ...]) -> None:
    """Give the file that calls what it uses of the solution's ``module``, but for what it has already and builtins.

    So there is no ``sorted`` or ``approx`` of the solution's, and no test, fixture or hook that pytest would find by
    its name.
    """
    space = sys._getframe(1).f_globals  # noqa: SLF001 - no name of it, which could be another's
    found = importlib.import_module(module)
    said = getattr(found, "__all__", None)
    names = [name for name in dir(found) if not name.startswith("_")] if said is None else list(said)
    for name in names:
        if type(name) is str and name in used and name not in space and not hasattr(builtins, name):
            space[name] = getattr(found, name)
