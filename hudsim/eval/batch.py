"""``Batch``: what one call of ``Taskset.run`` asks of a job: each task so many times, under one configuration."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hudsim.environment.task import Task
from hudsim.errors import UsageError
from hudsim.given import refusal

__all__ = ["VERSIONS", "Batch", "check_group"]

VERSIONS = "environments"
"""The key of a configuration that has the environments' versions by name, as far as they were known."""


@dataclass(frozen=True, slots=True)
class Batch:
    """``group`` runs of each of ``tasks``, task by task.

    config
        What else makes it comparable: agent, settings, limits. Plain JSON.
    """

    tasks: tuple[Task, ...]
    group: int
    config: dict[str, Any]

    @classmethod
    def of(cls, tasks: Sequence[Task], *, group: int, config: Mapping[str, Any]) -> Self:
        """Raises :class:`~hudsim.errors.UsageError`: two tasks of one slug, a group below 1, what is no plain JSON."""
        check_group(group)
        slug, times = Counter(task.slug for task in tasks).most_common(1)[0] if tasks else ("", 0)
        if times > 1:
            raise UsageError(f"{times} tasks have the slug {slug!r}: a slug names one group of runs")
        for task in tasks:
            _plain(task.to_row, f"task {task.slug}")
        return cls(tuple(tasks), group, _plain(lambda: dict(config), "the job's configuration"))

    @property
    def expected(self) -> int:
        """How many runs it is."""
        return len(self.tasks) * self.group

    def places(self) -> Iterator[tuple[Task, int]]:
        """The task and the index in its group of each run, in order."""
        return ((task, index) for task in self.tasks for index in range(self.group))

    def differences(self, had: Batch) -> list[str]:
        """How it differs from the one that was there before, in words.

        An order of tasks is no difference, nor is a version that only one of the two knows.
        """
        found = [] if self.group == had.group else [f"group: got {self.group}, the job has {had.group}"]
        found += _differences(_of_both(self.config, had.config), _of_both(had.config, self.config), "")
        here, there = ({task.slug: task for task in batch.tasks} for batch in (self, had))
        for slug, task in here.items():
            if slug not in there:
                found.append(f"task {slug} is new")
            else:
                apart = _differences(_plain(task.to_row, slug), _plain(there[slug].to_row, slug), "")
                found += [f"task {slug}: {words}" for words in apart]
        return found + [f"task {slug} is not there any more" for slug in there if slug not in here]

    def to_json(self) -> dict[str, Any]:
        return {"tasks": [task.to_row() for task in self.tasks], "group": self.group, "config": self.config}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Raises :class:`~hudsim.errors.UsageError` for what :meth:`to_json` does not give."""
        tasks, group, config = (document.get(key) for key in ("tasks", "group", "config"))
        if not isinstance(tasks, list):
            raise refusal("tasks", tasks, "a list of rows")
        if not isinstance(config, dict):
            raise refusal("config", config, "an object")
        return cls(tuple(Task.from_row(row, f"task {n}") for n, row in enumerate(tasks)), check_group(group), config)


def check_group(group: Any) -> int:
    """``group`` itself. Raises :class:`~hudsim.errors.UsageError` unless it is a whole number, at least 1."""
    if type(group) is not int or group < 1:
        raise refusal("group", group, "a whole number of runs, at least 1")
    return group


def _of_both(config: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` without the versions that the other does not know."""
    versions, others = (c[VERSIONS] if isinstance(c.get(VERSIONS), dict) else {} for c in (config, other))
    return {**config, VERSIONS: {name: version for name, version in versions.items() if name in others}}


def _plain(make: Callable[[], Any], what: str) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(make()))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} is no plain JSON: {error}") from None
    return plain


def _differences(got: Any, had: Any, path: str) -> list[str]:
    if isinstance(got, dict) and isinstance(had, dict):
        found = []
        for key in {**had, **got}:
            found += _differences(got.get(key), had.get(key), f"{path}.{key}" if path else key)
        return found
    return [] if got == had else [f"{path}: got {_short(got)}, the job has {_short(had)}"]


def _short(value: Any) -> str:
    words = "nothing" if value is None else repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
