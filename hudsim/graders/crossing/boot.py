"""``load``: these modules in an interpreter that has no hudsim, or another one: ``runpy.run_path("…/boot.py")``.

As a program it is the solution's side: ``python -I boot.py FD [FOLDER …]`` serves the socket FD, with the folders
first on the path of its imports.
"""

from __future__ import annotations

import importlib
import socket
import sys
import types
from pathlib import Path
from typing import Any

__all__ = ["load"]

_NAMES = ("hudsim", "hudsim.graders", "hudsim.graders.crossing")


def load(*names: str) -> list[Any]:
    """Modules beside this file. None of their names stays behind: what is imported later finds its own."""
    before = {word: module for word, module in sys.modules.items() if word.partition(".")[0] == "hudsim"}
    for word in before:
        del sys.modules[word]
    for word in _NAMES:
        module = sys.modules[word] = types.ModuleType(word)
        module.__path__ = [str(Path(__file__).parent)] if word == _NAMES[-1] else []
    try:
        return [importlib.import_module(f"{_NAMES[-1]}.{name}") for name in names]
    finally:
        for word in [word for word in sys.modules if word.partition(".")[0] == "hudsim"]:
            del sys.modules[word]
        sys.modules.update(before)


if __name__ == "__main__":
    number, *folders = sys.argv[1:]
    sys.path[:0] = folders
    try:
        load("solution_side")[0].serve(socket.socket(fileno=int(number)))
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
