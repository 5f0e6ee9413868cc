"""``LocalRuntime``: environments served in this process."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hudsim.environment import Environment, EnvironmentServer, load_environment
from hudsim.environment.task import Task
from hudsim.errors import EnvironmentFailed, UnknownName, UsageError
from hudsim.eval.plugged import check_reference, check_runtime_config
from hudsim.eval.pool import Pool, Pooled
from hudsim.eval.protocols import Agent
from hudsim.eval.runtime import Health, Runtime
from hudsim.given import check_arguments, given_object, given_path, given_seconds, given_text, refusal
from hudsim.net.address import new_token

__all__ = ["LocalRuntime"]

_SOURCE = "a .py file or a folder, a live Environment, a list of them, or a function of a task that makes one"


class LocalRuntime(Pooled):
    """Serves a task's environment in this process, on this event loop; what it spawns are processes of their own.

    source
        A ``.py`` file or a folder that declares it; a live :class:`~hudsim.environment.Environment`, or several of
        different names, for the tasks that they made; or a function that makes one for a task.
    env
        Its name, where that is not the task's ``env``. Only for a file or folder.
    settings
        What to configure it with; see :class:`~hudsim.environment.Environment`.
    reveal
        Whether agents may ask for references.
    ready_timeout
        How long it may take to come up [s].

    One environment serves as many runs at once as it has slots. When it is full, a file is run again for another;
    a live one is waited for. While a taskset runs they are kept from run to run; but a function is asked for every run.

    Raises :class:`~hudsim.errors.UsageError` for another kind of source, and for two environments of one name.
    """

    def __init__(
        self,
        source: str | Path | Environment | Iterable[Environment] | Callable[[Task], Environment],
        *,
        env: str | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        reveal: bool = False,
        ready_timeout: float = 120.0,
    ) -> None:
        super().__init__()
        self._file: str | Path | None = None
        self._live: dict[str, Environment] = {}
        self._make_one: Callable[[Task], Environment] | None = None
        if isinstance(source, str | os.PathLike):
            self._file = _found(source)
        elif isinstance(source, Environment):
            self._live = {source.name: source}
        elif callable(source) and not isinstance(source, type) and not inspect.iscoroutinefunction(source):
            check_arguments(source, "LocalRuntime", 1, _SOURCE)
            self._make_one = source
        else:
            self._live = _by_name(source)
        if env is not None and self._file is None:
            raise UsageError("LocalRuntime: env= is for a file or folder")
        self._env = None if env is None else given_text(env, "LocalRuntime: env", "an environment's name")
        self._settings = given_object(settings, "LocalRuntime: settings")
        self._reveal, self._ready_timeout = reveal, given_seconds(ready_timeout, "LocalRuntime: ready_timeout")
        self._loaded: set[str] = set()

    @property
    def makes_each(self) -> bool:
        """Whether its source is a function, which is asked for every run."""
        return self._make_one is not None

    async def check(self, tasks: Iterable[Task], agent: Agent) -> dict[str, str]:
        """Whether the environment has these tasks and settings, and reveals what ``agent`` needs; the versions of those
        that are known, by name.

        Raises what a run would be refused with.
        """
        tasks = list(tasks)
        check_runtime_config(tasks, self)
        check_reference(agent, "this LocalRuntime", reveals=self._reveal)
        if self._make_one is not None:
            return {}
        for task in tasks:
            if task.env in self._live:
                check_home(task, self._live[task.env])
        return check_tasks(tasks, self._settings, self._declared)

    def _declared(self, task: Task) -> Environment:
        if self._file is not None:
            return load_environment(self._file, name=self._env or task.env)
        if task.env not in self._live:
            raise UnknownName("environment", task.env, self._live)
        return self._live[task.env]

    def _pool(self, task: Task) -> Pool:
        if self._make_one is not None:
            return _Unpooled(self._serve)
        return Pool(self._serve, limit=1 if self._live else None)

    async def _serve(self, task: Task) -> _LocalServed:
        environment = self._make(task)
        environment.configure(**self._settings)
        server = EnvironmentServer(environment, bearer=new_token(), reveal=self._reveal)
        try:
            async with asyncio.timeout(self._ready_timeout):
                await server.start()
        except TimeoutError:
            raise EnvironmentFailed(
                f"environment {environment.name} did not come up within {self._ready_timeout:g} s"
            ) from None
        return _LocalServed(server)

    def _make(self, task: Task) -> Environment:
        if self._file is not None:
            name = self._env or task.env
            again = name in self._loaded
            self._loaded.add(name)
            return load_environment(self._file, name=name, fresh=again)
        if self._make_one is None:
            return self._declared(task)
        made = self._make_one(task)
        if not isinstance(made, Environment):
            raise UsageError(f"LocalRuntime: got a {type(made).__name__} for task {task.slug}, expected an Environment")
        return made


def check_tasks(
    tasks: Iterable[Task], settings: Mapping[str, Any], declared: Callable[[Task], Environment]
) -> dict[str, str]:
    """Whether the environments that tasks are ``declared`` in have them, and these settings; their versions by name."""
    environments: dict[str, Environment] = {}
    for task in tasks:
        environment = environments.get(task.env) or environments.setdefault(task.env, declared(task))
        environment.find(task.id).parameters.check(task.args)
        environment.check_settings(settings)
    return {environment.name: environment.version for environment in environments.values()}


def check_home(task: Task, environment: Environment) -> None:
    """Raises :class:`~hudsim.errors.UsageError` if another one of its name made ``task``."""
    if task.home is not None and task.home is not environment:
        raise UsageError(
            f"task {task.slug} was made by another environment called {environment.name} than the one it would run in; "
            "give one of the two another name"
        )


def _found(source: str | os.PathLike[str]) -> str | Path:
    """Where ``source`` is, wherever the process goes from here; ``module:attr`` is no place."""
    path = given_path(source, "LocalRuntime")
    is_module = ":" in str(source) and not path.exists() and ".py:" not in str(source)
    return str(source) if is_module else path.absolute()


def _by_name(source: Any) -> dict[str, Environment]:
    if not isinstance(source, Iterable):
        raise refusal("LocalRuntime", source, _SOURCE)
    live: dict[str, Environment] = {}
    for environment in source:
        if not isinstance(environment, Environment):
            raise refusal("LocalRuntime", environment, _SOURCE)
        if live.setdefault(environment.name, environment) is not environment:
            raise UsageError(
                f"two environments are called {environment.name}, and a task says which by name alone; give one of the "
                "two another name"
            )
    return live


class _Unpooled(Pool):
    """Starts one for each run: what a function makes for one task may be no other's."""

    @asynccontextmanager
    async def lease(self, task: Task) -> AsyncIterator[Runtime]:
        served = await self._start(task)
        try:
            yield served.runtime
        finally:
            await served.stop()


class _LocalServed:
    def __init__(self, server: EnvironmentServer) -> None:
        self._server = server
        self.runtime = Runtime(server.address.url, health=Health())
        self.slots = server.environment.slots

    async def stop(self) -> None:
        await self._server.stop()
