"""``load_target`` and ``load_source``: Python objects by the names that people and processes give them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from hudsim.errors import UnknownName, UsageError
from hudsim.given import given_path, given_text

__all__ = ["load_source", "load_target", "target_of"]

_STANDS_IN = "hudsim_file_"
_NOT_SOURCE = ("conftest.py", "setup.py")

_folders: set[Path] = set()
"""Where files were loaded from: their modules are found in this process, and not by an import in another."""
_ours: dict[str, Path] = {}
"""The modules that were loaded from a file, and what they imported from beside it: names that are theirs alone while
nobody else's file of the same name is loaded."""


def load_target(target: str) -> Any:
    """The object that ``module:attr`` or ``path/file.py:attr`` names.

    Raises :class:`~hudsim.errors.UsageError` that says what is missing and what there is.
    """
    where, _, attribute = given_text(target, "target", "module:attr or file.py:attr").rpartition(":")
    if not where:
        raise UsageError(f"got {target!r}, expected module:attr or file.py:attr")
    module = load_source(where)[0] if where.endswith(".py") else _import(where, target)
    if not hasattr(module, attribute):
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        raise UnknownName(f"class or function in {where}", attribute, own)
    return getattr(module, attribute)


def load_source(path: str | Path, *, fresh: bool = False) -> list[ModuleType]:
    """The module of a ``.py`` file, or the modules of a folder's (tests and names with ``_`` left out).

    Files find those beside them by their names, as scripts do. ``fresh`` runs them anew, though they are loaded.
    Raises :class:`~hudsim.errors.UsageError` for a path that is not there, a folder without Python, and what an
    import raises, with its ``traceback`` in ``data``.
    """
    where = Path(os.path.abspath(given_path(path, "source")))  # noqa: PTH100 - links are kept: a package is known by its folders' names
    files = [where] if where.is_file() else sorted(where.glob("*.py"))
    files = [file for file in files if file == where or not _is_aside(file.name)]
    if not where.exists():
        raise UsageError(f"no file {where}")
    if not files or (where.is_file() and where.suffix != ".py"):
        raise UsageError(f"{where}: got no Python file, expected a .py file or a folder of them")
    modules = {file: _module_name(file) for file in files}
    _make_room({file.stem for file in where.parent.glob("*.py")} if where.is_file() else set(), modules, fresh=fresh)
    return [_load_file(file, name) for file, name in modules.items()]


def target_of(kind: Any) -> str:
    """``module:attr`` of a class or function, for another process: by its file, where no import finds its module."""
    name, qualname = kind.__module__, kind.__qualname__
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "").absolute()
    by_file = name == "__main__" or name.startswith(_STANDS_IN) or file.parent in _folders
    return f"{file if by_file else name}:{qualname}"


def _is_aside(name: str) -> bool:
    return name.startswith(("_", "test_")) or name in _NOT_SOURCE


def _import(name: str, target: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{target}: no module {error.name!r} can be imported (sys.path: {sys.path[:3]} …)") from None
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _unimportable(target, error) from error


def _module_name(file: Path) -> str:
    """Its dotted name if it lies in a package, else its own."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names)


def _make_room(siblings: set[str], modules: dict[Path, str], *, fresh: bool) -> None:
    """Forget modules of other files that bear the names wanted now; with ``fresh`` these files' own, too."""
    wanted = {name: file for file, name in modules.items()}
    folder = next(iter(modules)).parent
    for name in siblings | set(wanted):
        theirs = _ours.get(name)
        if theirs is not None and (fresh or theirs.parent != folder):
            sys.modules.pop(name, None)
            del _ours[name]
    if fresh:
        for name in wanted:
            sys.modules.pop(name, None)


def _load_file(file: Path, name: str) -> ModuleType:
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(file):
        return loaded
    if loaded is not None:  # a library's name, which stays the library's
        name = f"{_STANDS_IN}{name}"
    if "." in name and _is_importable(name, file):
        return _imported(name, file)
    root = file.parents[name.count(".")] if "." in name else file.parent
    _folders.add(file.parent)
    if sys.path[0] != str(root):  # first, before another folder with files of the same names
        sys.path[:] = [str(root), *(entry for entry in sys.path if entry != str(root))]
        importlib.invalidate_caches()
    before = set(sys.modules)
    module = _imported(name, file)
    for new in set(sys.modules) - before:
        path = getattr(sys.modules[new], "__file__", None)
        if path is not None and Path(path).parent == file.parent and "." not in new:
            _ours[new] = Path(path)
    return module


def _is_importable(name: str, file: Path) -> bool:
    """Whether an import finds this very file by its package's name, as another process would."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return False
    return spec is not None and spec.origin == str(file)


def _imported(name: str, file: Path) -> ModuleType:
    try:
        return importlib.import_module(name) if "." in name else _run(file, name)
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit, and whatever else a script may raise
        raise _unimportable(str(file), error) from error


def _run(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _unimportable(target: str, error: BaseException) -> UsageError:
    told = traceback.TracebackException.from_exception(error, limit=-8)  # it stands what a __str__ may raise
    why = f"{target} cannot be imported: {type(error).__name__}: {told}"
    return UsageError(why, traceback="".join(told.format()))
