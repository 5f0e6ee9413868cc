"""From what was typed to an environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudsim.environment import Environment
    from hudsim.eval import Taskset

__all__ = ["find_environment", "find_tasks", "is_environment"]

_DATA = (".json", ".jsonl")


def is_environment(target: str) -> bool:
    """Whether ``target`` means an environment: a folder, a ``.py`` file, or a name that no world bears."""
    from hudsim import registry

    if target in registry.environments():
        return target not in registry.worlds()
    return target.endswith(".py") or os.path.isdir(target)  # noqa: PTH112 - Path raises for a name that is too long


def find_environment(target: str, name: str | None) -> Environment:
    """The environment of a folder, a ``.py`` file, ``module:attr``, rows of tasks, or a name from `hudsim list`.

    ``name``: which, where there are several. Raises :class:`~hudsim.errors.UsageError` for what is none.
    """
    from hudsim import registry
    from hudsim.environment import load_environment
    from hudsim.errors import UnknownName

    if target in registry.environments() or target.endswith(_DATA):
        source = registry.taskset(target)
        used = {task.env for task in source.taskset}
        return load_environment(source.file, name=name or (used.pop() if len(used) == 1 else None))
    is_there = os.path.exists(target)  # noqa: PTH110 - as above
    if ":" not in target and not is_there and not target.endswith(".py"):
        raise UnknownName("environment", target, [*registry.environments(), *registry.FORMS["environment"]])
    return load_environment(target, name=name)


def find_tasks(target: str) -> Taskset:
    """The tasks of what :func:`find_environment` takes; none for a ``module:attr`` of an environment."""
    from hudsim import registry
    from hudsim.eval import Taskset

    if target in registry.environments():
        return registry.taskset(target).taskset
    if ":" in target and not os.path.exists(target):  # noqa: PTH110 - as above
        return Taskset()
    return Taskset.from_file(target)
