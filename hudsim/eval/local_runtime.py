"""``LocalRuntime``: environments served in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hudsim.environment import Environment, EnvironmentServer, load_environment
from hudsim.environment.task import Task
from hudsim.errors import EnvironmentFailed, UnknownName, UsageError
from hudsim.eval.pool import Pool, Pooled
from hudsim.eval.runtime import Runtime
from hudsim.net.address import new_token

__all__ = ["LocalRuntime"]


class LocalRuntime(Pooled):
    """Serves a task's environment in this process, on this event loop; what it spawns are processes of their own.

    source
        A ``.py`` file or a folder that declares it; a live :class:`~hudsim.environment.Environment`, or several; or a
        function that makes one for a task.
    env
        Its name, where that is not the task's ``env``. Only for a file or folder.
    settings
        What to configure it with; see :class:`~hudsim.environment.Environment`.
    reveal
        Whether agents may ask for references.
    ready_timeout
        How long it may take to come up [s].

    One environment serves as many runs at once as it has slots. When it is full, a file is run again for another;
    a live one is waited for. While a taskset runs they are kept from run to run.
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
        if env is not None and not isinstance(source, str | Path):
            raise UsageError("LocalRuntime: env= is for a file or folder")
        self._live: dict[str, Environment] = {}
        if isinstance(source, Environment):
            self._live = {source.name: source}
        elif isinstance(source, Iterable) and not isinstance(source, str):
            self._live = {environment.name: environment for environment in source}
        self._source = source
        self._env = env
        self._settings = dict(settings)
        self._reveal, self._ready_timeout = reveal, ready_timeout
        self._loaded: set[str] = set()

    def check(self, tasks: Iterable[Task]) -> None:
        """Whether the environment has these tasks and settings. Raises what a run would be refused with."""
        if not callable(self._source):
            check_tasks(tasks, self._settings, self._declared)

    def _declared(self, task: Task) -> Environment:
        if isinstance(self._source, str | Path):
            return load_environment(self._source, name=self._env or task.env)
        if task.env not in self._live:
            raise UnknownName("environment", task.env, self._live)
        return self._live[task.env]

    def _pool(self, task: Task) -> Pool:
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
        if isinstance(self._source, str | Path):
            name = self._env or task.env
            again = name in self._loaded
            self._loaded.add(name)
            return load_environment(self._source, name=name, fresh=again)
        if not callable(self._source):
            return self._declared(task)
        made = self._source(task)
        if not isinstance(made, Environment):
            raise UsageError(f"LocalRuntime: got a {type(made).__name__} for task {task.slug}, expected an Environment")
        return made


def check_tasks(tasks: Iterable[Task], settings: Mapping[str, Any], declared: Callable[[Task], Environment]) -> None:
    """Whether the environments that tasks are ``declared`` in have them, and these settings."""
    environments: dict[str, Environment] = {}
    for task in tasks:
        environment = environments.get(task.env) or environments.setdefault(task.env, declared(task))
        environment.find(task.id).parameters.check(task.args)
        environment.check_settings(settings)


class _LocalServed:
    def __init__(self, server: EnvironmentServer) -> None:
        self._server = server
        self.runtime = Runtime(server.address.url)
        self.slots = server.environment.slots

    async def stop(self) -> None:
        await self._server.stop()
