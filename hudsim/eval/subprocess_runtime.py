"""``SubprocessRuntime``: environments served by processes of their own."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hudsim import spawn
from hudsim.environment import Environment, load_environment
from hudsim.environment.task import Task
from hudsim.errors import EnvironmentFailed, HudsimError, UsageError
from hudsim.eval.local_runtime import check_home, check_tasks
from hudsim.eval.plugged import check_reference, check_runtime_config
from hudsim.eval.pool import Pool, Pooled
from hudsim.eval.protocols import Agent
from hudsim.eval.runtime import Health, Runtime
from hudsim.given import given_object, given_path, given_seconds, given_text, refusal
from hudsim.loop.child import Child
from hudsim.net.address import new_token

__all__ = ["SubprocessRuntime"]


class SubprocessRuntime(Pooled):
    """Serves a task's environment from ``source`` in a process of its own, in the source's folder.

    As :class:`~hudsim.eval.LocalRuntime` with a file or folder, but nothing that the environment does (block, crash,
    leave something behind in memory) reaches this process, and a process that died is replaced for the next run.
    ``source`` may be a live environment: it is served from the file that declares its templates.

    Raises :class:`~hudsim.errors.UsageError` for a source that is not there, and for another kind of one.
    """

    def __init__(
        self,
        source: str | Path | Environment,
        *,
        env: str | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        reveal: bool = False,
        ready_timeout: float = 120.0,
    ) -> None:
        super().__init__()
        self._live: Environment | None = None
        if isinstance(source, Environment):
            if env is not None:
                raise UsageError("SubprocessRuntime: env= is for a file or folder")
            self._live, source, env = source, _file_of(source), source.name
        if not isinstance(source, str | os.PathLike):
            raise refusal("SubprocessRuntime", source, "a .py file or a folder, or a live Environment")
        self._source = given_path(source, "SubprocessRuntime").absolute()
        self._env = None if env is None else given_text(env, "SubprocessRuntime: env", "an environment's name")
        self._settings = given_object(settings, "SubprocessRuntime: settings")
        self._reveal, self._ready_timeout = reveal, given_seconds(ready_timeout, "SubprocessRuntime: ready_timeout")
        if not self._source.exists():
            raise UsageError(f"SubprocessRuntime: no file {self._source}")

    async def check(self, tasks: Iterable[Task], agent: Agent) -> dict[str, str]:
        """Whether the environment has these tasks and settings, and reveals what ``agent`` needs; the versions of those
        that are known, by name.

        Raises what a run would be refused with.
        """
        tasks = list(tasks)
        check_runtime_config(tasks, self)
        check_reference(agent, "this SubprocessRuntime", reveals=self._reveal)
        for task in tasks:
            if self._live is not None and task.env == self._live.name:
                check_home(task, self._live)
        return check_tasks(
            tasks, self._settings, lambda task: load_environment(self._source, name=self._env or task.env)
        )

    def _pool(self, task: Task) -> Pool:
        return Pool(self._serve)

    async def _serve(self, task: Task) -> _ChildServed:
        command = spawn.command("hudsim.environment.process")
        child = Child(command, name="environment", failed=EnvironmentFailed)
        order = {
            "source": str(self._source),
            "env": self._env or task.env,
            "settings": self._settings,
            "bearer": new_token(),
            "reveal": self._reveal,
        }
        try:
            said = await child.start(order, timeout_s=self._ready_timeout)
        except BaseException:
            await child.stop()
            raise
        return _ChildServed(child, said["url"], said["slots"])


def _file_of(environment: Environment) -> Path:
    files = {Path(inspect.getfile(template.func)) for template in environment.templates.values()}
    if len(files) != 1:
        listed = ", ".join(sorted(map(str, files))) or "no file"
        raise UsageError(
            f"SubprocessRuntime: environment {environment.name} declares its templates in {listed}; expected one file"
        )
    return files.pop()


class _ChildServed:
    def __init__(self, child: Child, url: str, slots: int | None) -> None:
        self._child = child
        self.runtime, self.slots = Runtime(url, health=Health(self._failure)), slots

    def _failure(self) -> HudsimError | None:
        if self._child.failure is None and _has_ended(self._child.pid):
            return EnvironmentFailed("the environment process has died")
        return self._child.failure

    async def stop(self) -> None:
        await self._child.stop()


def _has_ended(pid: int | None) -> bool:
    """Whether a child has; the news of it may be on its way still, while run after run is sent to a closed port."""
    if pid is None or not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
