"""``load_environment``: the environment that a file, folder or name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from hudsim.environment.environment import Environment
from hudsim.environment.task import Task
from hudsim.errors import HudsimError, UnknownName, UsageError
from hudsim.given import given_a, given_path, given_text
from hudsim.target import load_source, load_target

__all__ = ["environments_in", "load_environment"]


def load_environment(
    target: str | Path,
    *,
    name: str | None = None,
    args: Mapping[str, Any] = MappingProxyType({}),
    fresh: bool = False,
) -> Environment:
    """The environment of a ``.py`` file or a folder of them, or of ``module:attr``.

    name
        Which, by :class:`Environment`'s name or its variable's. None: the only one.
    args
        For a ``module:attr`` that is a function which makes one.
    fresh
        Run the file again, though it is loaded: another environment, of its own.

    Raises :class:`~hudsim.errors.UsageError` for a source without an environment, with several and no ``name``, or
    with several of that name, :class:`~hudsim.errors.UnknownName` for a name that is not there.
    """
    path = given_path(target, "load_environment")
    given_a(Mapping, args, "args", "names and values")
    if name is not None:
        given_text(name, "name", "an environment's name")
    if not path.exists() and path.with_suffix(".py").is_file():
        path = path.with_suffix(".py")
    if not path.exists() and ":" in str(target):
        return _of_target(str(target), args)
    if args:
        raise UsageError(f"{target}: got args {sorted(args)}, which are for a module:attr that makes an environment")
    found = environments_in(load_source(path, fresh=fresh))
    if not found:
        raise UsageError(f"{path}: got no Environment, expected one: env = Environment(name)")
    there_are = {id(environment): environment.name for same in found.values() for environment in same}
    names = sorted(set(there_are.values()))
    if name is None and len(there_are) == 1:
        name = names[0]
    if name is None and len(names) > 1:
        raise UsageError(f"{path} declares {len(names)} environments; name one of {', '.join(names)}")
    name = name or names[0]
    if name not in found:
        raise UnknownName(f"environment in {path}", name, names)
    if len(found[name]) > 1:
        raise UsageError(f"{path} declares {len(found[name])} environments called {name}; give each a name of its own")
    return found[name][0]


def environments_in(modules: Iterable[ModuleType]) -> dict[str, list[Environment]]:
    """What the modules declare, by the environments' names; by their variables' too, where no other has that name.

    Of one name there should be one, and it is for the caller to say so.
    """
    by_name: dict[str, list[Environment]] = {}
    by_variable: dict[str, list[Environment]] = {}
    for module in modules:
        for variable, value in list(vars(module).items()):
            for environment in _environments_of(value):
                same = by_name.setdefault(environment.name, [])
                if all(other is not environment for other in same):
                    same.append(environment)
                if isinstance(value, Environment):
                    by_variable.setdefault(variable, [environment])
    return {**by_variable, **by_name}


def _environments_of(value: Any) -> list[Environment]:
    """An environment, those of a list or dict of them, and those that tasks come from."""
    if isinstance(value, Environment):
        return [value]
    if isinstance(value, Task):
        return [value.home] if value.home is not None else []
    if isinstance(value, list | tuple):
        return [found for item in value for found in _environments_of(item)]
    if isinstance(value, dict):
        return [found for item in value.values() for found in _environments_of(item)]
    return []


def _of_target(target: str, args: Mapping[str, Any]) -> Environment:
    made = load_target(target)
    if callable(made) and not isinstance(made, Environment):
        try:
            made = made(**args)
        except HudsimError:
            raise
        except Exception as error:
            raise UsageError(f"{target} made no Environment: {type(error).__name__}: {error}") from error
    if not isinstance(made, Environment):
        raise UsageError(f"{target}: got a {type(made).__name__}, expected an Environment or a function that makes one")
    return made
