"""``Taskset``: tasks with names, in order; read from files, and run in groups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, Self

from hudsim.environment.task import Task
from hudsim.environment.template import Template
from hudsim.errors import UnknownName, UsageError
from hudsim.eval.batch import VERSIONS, check_group
from hudsim.eval.job import Job
from hudsim.eval.limits import Limits
from hudsim.eval.local_runtime import LocalRuntime
from hudsim.eval.plugged import check_agent, check_provider, versions_of
from hudsim.eval.pool import scope_of
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.rollout import rollout
from hudsim.eval.run import Run
from hudsim.eval.waiting import tell
from hudsim.given import given_a, given_count, given_object, given_path, given_text, refusal
from hudsim.target import load_source

__all__ = ["RUNS", "OnEvent", "Taskset"]

RUNS = Path("runs")
"""Where jobs are kept: the folder of ``hudsim.db``."""

OnEvent = Callable[[Literal["started", "finished"], Run], None]
"""Told of each run as it begins and once it is kept."""


class Taskset:
    """Named tasks, in order. Iterating gives the tasks, indexing the one of a slug.

    Raises :class:`~hudsim.errors.UsageError` for two tasks of one slug, and for what is no task.
    """

    def __init__(self, name: str | None = None, tasks: Iterable[Task] = ()) -> None:
        self.name = given_text(name or "taskset", "taskset name")
        self.tasks: dict[str, Task] = {}
        for task in _each_a_task(tasks, f"taskset {self.name}"):
            other = self.tasks.setdefault(task.slug, task)
            if other is not task:
                raise UsageError(
                    f"taskset {self.name}: two tasks are called {task.slug} ({other.env}/{other.id} and "
                    f"{task.env}/{task.id}); give each a slug= of its own"
                )

    # Files --------------------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """From a ``.py`` file, a folder of them, or rows in ``.json`` (a list) or ``.jsonl``.

        Of Python it takes every task, taskset and list of tasks that stands in a variable without ``_``.
        Raises :class:`~hudsim.errors.UsageError` that names the file and line.
        """
        source = given_path(path, "taskset")
        try:
            source.stat()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            raise UsageError(f"no file {source}" if gone else f"{source} cannot be read: {error.strerror}") from None
        if source.suffix in (".json", ".jsonl"):
            return cls(source.stem, _read_rows(source))
        return cls.from_module(source)

    @classmethod
    def from_module(cls, source: str | Path) -> Self:
        """From a ``.py`` file or a folder of them; called as their one environment, if there is only one.

        Raises as :meth:`from_file`.
        """
        path = given_path(source, "taskset")
        found = {id(task): task for module in load_source(path) for task in _tasks_in(module)}
        environments = {task.env for task in found.values()}
        return cls(environments.pop() if len(environments) == 1 else path.resolve().stem, found.values())

    def to_file(self, path: str | Path) -> Path:
        """Write the rows to ``.json`` or ``.jsonl``.

        Raises :class:`~hudsim.errors.UsageError` for another name, and for a place that cannot be written.
        """
        target = given_path(path, "to_file")
        rows = [task.to_row() for task in self]
        if target.suffix == ".json":
            words = json.dumps(rows, indent=2) + "\n"
        elif target.suffix == ".jsonl":
            words = "".join(json.dumps(row) + "\n" for row in rows)
        else:
            raise UsageError(f"got {target.name}, expected a name that ends in .json or .jsonl")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(words)
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}") from None
        return target

    # Which --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks.values())

    def __getitem__(self, slug: str) -> Task:
        if given_text(slug, self.name, "the slug of a task") not in self.tasks:
            raise UnknownName(f"task in {self.name}", slug, self.tasks)
        return self.tasks[slug]

    def items(self) -> ItemsView[str, Task]:
        """Slugs and tasks."""
        return self.tasks.items()

    def filter(self, slugs: Iterable[str]) -> Taskset:
        """Those of ``slugs`` alone, in this order. Raises :class:`~hudsim.errors.UnknownName` for one not there."""
        chosen = self._slugs(slugs)
        return Taskset(self.name, (task for task in self if task.slug in chosen))

    def exclude(self, slugs: Iterable[str]) -> Taskset:
        """All but those of ``slugs``. Raises :class:`~hudsim.errors.UnknownName` for one not there."""
        left_out = self._slugs(slugs)
        return Taskset(self.name, (task for task in self if task.slug not in left_out))

    def _slugs(self, slugs: Iterable[str]) -> set[str]:
        if isinstance(slugs, str) or not isinstance(slugs, Iterable):
            raise refusal(self.name, slugs, "a list of slugs")
        return {self[slug].slug for slug in slugs}

    # Running ------------------------------------------------------------------------------------------------------

    async def run(
        self,
        agent: Agent,
        *,
        runtime: Provider | None = None,
        group: int | None = None,
        max_concurrent: int | None = None,
        job: Job | None = None,
        rollout_timeout: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the agent's, not this call's
        grade_timeout: float | None = Limits().grade_s,
        runs: str | Path | None = RUNS,
        config: Mapping[str, Any] = MappingProxyType({}),
        on_event: OnEvent = lambda event, run: None,
    ) -> Job:
        """Run every task ``group`` times with ``agent``; the job, every run of which is graded or says why not.

        runtime
            Where environments run. None: in this process, for tasks that a template here has made.
        group
            Runs a task. None: the job's, else 1.
        max_concurrent
            Runs at once. None: all.
        job
            To add to, from :meth:`Job.start`; or to go on with, from :meth:`Job.resume`: then only what is missing is
            run. None: a new one.
        timeout, rollout_timeout, grade_timeout
            Seconds for the agent (graded as it stands then), for a whole run, for grading; see
            :class:`~hudsim.eval.limits.Limits`. None: no limit.
        runs
            The folder that a new job is kept in. None: nowhere.
        config
            What else makes this job what it is, plain JSON; a resume with another is refused. The environments'
            versions are in it as far as they are known before the first run.

        A run that breaks does not break the others. Raises before anything runs :class:`~hudsim.errors.UsageError` for
        what cannot be and :class:`~hudsim.errors.LinkError` if a ``Runtime(url)`` cannot be reached; then
        :class:`~hudsim.errors.StoreError` if a run cannot be kept.
        """
        check_agent(agent)
        limits = Limits(agent_s=timeout, rollout_s=rollout_timeout, grade_s=grade_timeout)
        if max_concurrent is not None:
            given_count(max_concurrent, "max_concurrent")
        if job is not None:
            given_a(Job, job, "job", "one from Job.start(…) or Job.resume(…)")
        if not callable(on_event):
            raise refusal("on_event", on_event, "a function of an event and its run")
        limited = {"timeout": timeout, "rollout_timeout": rollout_timeout, "grade_timeout": grade_timeout}
        asked = {"agent": _name_of(agent), **limited, **given_object(config, "config")}
        size = check_group((1 if job is None else job.group) if group is None else group)
        tasks = list(self)
        for task in tasks:
            limits.of(task)
        if runtime is not None:
            check_provider(runtime)
        provider = runtime if runtime is not None else _at_home(tasks, agent)
        known = await versions_of(provider, tasks, agent)
        kept = await Job.start(self.name, group=size, runs=runs) if job is None else job
        try:
            planned = await kept.plan(tasks, size, {VERSIONS: known, **asked})
            async with scope_of(provider):
                await _run_all(planned, agent, provider, limits, max_concurrent, kept, on_event)
        finally:
            if job is None:
                await kept.close()
        return kept


def _each_a_task(tasks: Any, what: str) -> Iterator[Task]:
    if isinstance(tasks, Task) or not isinstance(tasks, Iterable):
        raise refusal(what, tasks, "a list of tasks")
    for task in tasks:
        call = "; call the template with its arguments" if isinstance(task, Template) else ""
        yield given_a(Task, task, what, f"tasks{call}")


async def _run_all(
    planned: list[Run],
    agent: Agent,
    provider: Provider,
    limits: Limits,
    max_concurrent: int | None,
    job: Job,
    on_event: OnEvent,
) -> None:
    queue = iter(planned)
    live: set[Run] = set()

    async def work() -> None:
        for run in queue:  # shared: each takes the next
            live.add(run)
            on_event("started", run)
            await rollout(run, agent, provider, limits)
            live.remove(run)
            await job.finish(run)
            on_event("finished", run)

    workers = min(len(planned), max_concurrent or len(planned))
    telling = asyncio.create_task(tell(live), name="hudsim-waiting")
    try:
        async with asyncio.TaskGroup() as workers_group:
            for _ in range(workers):
                workers_group.create_task(work())
    except BaseExceptionGroup as broken:
        raise broken.exceptions[0] from None  # the first: the others were cancelled for it
    finally:
        telling.cancel()


def _at_home(tasks: list[Task], agent: Agent) -> Provider:
    """Each task in the live environment that made it."""
    homeless = [task.slug for task in tasks if task.home is None]
    if homeless:
        raise UsageError(
            f"task {homeless[0]} came from a file, so it does not say where its environment runs; pass runtime=, as in "
            'LocalRuntime("env.py"), SubprocessRuntime("env.py") or Runtime("ws://…")'
        )
    homes = {id(task.home): task.home for task in tasks if task.home is not None}
    return LocalRuntime(homes.values(), reveal=getattr(agent, "needs_reference", False))


def _name_of(agent: Agent) -> str:
    """What an agent is called in the record."""
    name = getattr(agent, "name", None) or getattr(agent, "__qualname__", None)
    return str(name or type(agent).__qualname__)


def _read_rows(path: Path) -> list[Task]:
    try:
        words = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if path.suffix == ".jsonl":
        lines = [(f"{path}:{n}", line) for n, line in enumerate(words.split("\n"), 1) if line.strip()]
        return [Task.from_row(_read_json(line, where), where) for where, line in lines]
    rows = _read_json(words, str(path))
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise UsageError(f"{path}: got a {type(rows).__name__}, expected a list of tasks")
    return [Task.from_row(row, f"{path}[{n}]") for n, row in enumerate(rows)]


def _read_json(words: str, where: str) -> Any:
    try:
        return json.loads(words)
    except (ValueError, RecursionError) as error:  # no JSON, a number of thousands of digits, a nest of brackets
        raise UsageError(f"{where}: got no JSON: {error}") from None


def _tasks_in(module: ModuleType) -> Iterator[Task]:
    for name, value in list(vars(module).items()):
        if isinstance(value, Task) and not name.startswith("_"):
            yield value
        elif isinstance(value, Taskset | list | tuple) and not name.startswith("_"):
            yield from (item for item in value if isinstance(item, Task))
