"""``SshLines``: for each session of a served environment, how a person gets into its workspace with OpenSSH."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from hudsim.cli.output import say
from hudsim.errors import HudsimError, UsageError

if TYPE_CHECKING:
    from hudsim.coding import Workspace
    from hudsim.environment import Environment
    from hudsim.environment.task import Task

__all__ = ["SshLines", "started"]


class SshLines:
    """Stands in for a workspace towards the sessions: says the lines when one begins, and removes its key at its end.

    The keys lie in a folder that only this user may read, and that goes when this process does, however it ends.
    """

    def __init__(self, workspace: Workspace, name: str, folder: Path) -> None:
        self._workspace, self._name, self._folder = workspace, name, folder
        self._keys: dict[object, Path] = {}

    @classmethod
    @contextlib.contextmanager
    def shown(cls, environment: Environment) -> Iterator[None]:
        """Of all workspaces of ``environment``, as long as this lasts."""
        from hudsim.coding.place import Place
        from hudsim.coding.tree import remove_tree

        folder = Place.mine().room("ssh")
        workspaces = dict(environment.workspaces)
        for name, workspace in workspaces.items():
            environment.workspaces[name] = cast("Workspace", cls(workspace, name, folder))
        try:
            yield
        finally:
            environment.workspaces.update(workspaces)
            remove_tree(folder)

    def __getattr__(self, name: str) -> Any:
        """All else is the workspace's own."""
        return getattr(self._workspace, name)

    async def bindings(self, name: str) -> dict[str, dict[str, Any]]:
        """As the workspace's own."""
        from hudsim.coding.login import ssh_command
        from hudsim.environment.attached import current_holder

        found = await self._workspace.bindings(name)
        binding = found[name]
        keys = self._folder / f"{name}-{binding['session']}"
        keys.mkdir(mode=0o700, exist_ok=True)
        self._keys[current_holder.get()] = keys
        capability = self._workspace.capability(name)
        typer.echo(f"# {name}: workspace {binding['session']}")
        typer.echo(ssh_command(capability, binding, keys))
        typer.echo(ssh_command(capability, binding, keys, program="sftp"))
        return found

    async def leave(self, owner: object = None) -> None:
        """As the workspace's own."""
        from hudsim.coding.tree import remove_tree

        try:
            await self._workspace.leave(owner)
        finally:
            keys = self._keys.pop(owner, None)
            if keys is not None:
                remove_tree(keys)


@contextlib.asynccontextmanager
async def started(environment: Environment, target: str, url: str) -> AsyncIterator[None]:
    """The first task of ``target`` is started in a session of the server's own: there is something to look at.

    Not where a workspace is one directory, which agents will want: then the lines come with the first session.
    """
    from hudsim.environment import ControlClient

    task = _first(environment, target)
    if task is None or environment.slots is not None:
        say("each task that is started, as with `hudsim task start`, shows the way into its workspace here")
        yield
        return
    async with await ControlClient.connect(url) as control:
        try:
            await control.start(task.id, task.args)
            say(f"the task {task.slug} has been started, to be looked at: it is nobody else's")
        except HudsimError as error:
            say(f"the task {task.slug} could not be started, to be looked at: {error.message}")
        yield


def _first(environment: Environment, target: str) -> Task | None:
    """The first task that is declared with the environment, else one of a template that needs no argument."""
    from hudsim import registry

    try:
        tasks = [task for task in registry.taskset(target).taskset if task.env == environment.name]
    except UsageError:
        tasks = []
    for template in environment.templates.values():
        if not template.parameters.schema.get("required"):
            tasks.append(template())
    return tasks[0] if tasks else None
