"""``hudsim task``: what tasks there are, and one of them by hand: start, work, grade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, read_settings
from hudsim.cli.output import columns, emit_json, stdout
from hudsim.cli.words import plain
from hudsim.errors import UsageError

if TYPE_CHECKING:
    from hudsim.environment import ControlClient

__all__ = ["commands"]

commands = typer.Typer(
    help="The tasks of an environment, and one of them by hand.", no_args_is_help=True, rich_markup_mode=None
)

_PARK_S = 3600.0

Url = Annotated[str, typer.Argument(metavar="URL", help="What `hudsim serve` printed.")]


@commands.command("list")
def list_(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An environment from `hudsim list`, FILE.py, a folder or ws://…")
    ],
    *,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="Which, where there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """List an environment's tasks and what each takes."""
    from hudsim import loop, registry
    from hudsim.cli.environments import find_environment

    if registry.is_url(target):
        if env is not None:
            raise UsageError(f"--env {env}: a server has one environment")
        name, tasks = loop.run(_served(target))
    else:
        environment = find_environment(target, env)
        name, tasks = environment.name, [template.manifest() for template in environment.templates.values()]
    if as_json:
        emit_json({"environment": name, "tasks": tasks})
    else:
        _print(name, tasks)


@commands.command()
def start(
    url: Url,
    task: Annotated[str, typer.Argument(metavar="ID", help="A task's id, from `hudsim task list URL`.")],
    *,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument of the task; VALUE is JSON or a word."),
    ] = None,
) -> None:
    """Start a task and leave it to be worked on.

    Prints JSON: the session to grade it by, the prompt, and where what it has is reached. Kept for an hour.
    """
    from hudsim import loop

    emit_json(loop.run(_start(_served_at(url), task, read_settings(settings))))


@commands.command()
def grade(
    url: Url,
    *,
    session: Annotated[str, typer.Option(metavar="ID", help="What `hudsim task start` printed.")],
    answer: Annotated[str | None, typer.Option(metavar="TEXT", help="The answer.", show_default="none")] = None,
) -> None:
    """Grade a task that was started; prints the grade as JSON."""
    from hudsim import loop

    emit_json(loop.run(_grade(_served_at(url), session, answer)))


async def _served(url: str) -> tuple[str, list[dict[str, Any]]]:
    async with await _client(url) as control:
        return control.environment, await control.list_tasks()


async def _start(url: str, task: str, args: dict[str, Any]) -> dict[str, Any]:
    control = await _client(url, park_s=_PARK_S)
    try:
        started = await control.start(task, args)
    except BaseException:
        await control.close()
        raise
    await control.drop()
    capabilities = [capability.to_manifest() for capability in control.capabilities.values()]
    return {"session": control.session_id, **started, "capabilities": capabilities}


async def _grade(url: str, session: str, answer: str | None) -> dict[str, Any]:
    async with await _client(url, session_id=session) as control:
        return await control.grade(answer)


async def _client(url: str, **options: Any) -> ControlClient:
    from hudsim.environment import ControlClient

    return await ControlClient.connect(url, **options)


def _served_at(url: str) -> str:
    from hudsim import registry

    if not registry.is_url(url):
        raise UsageError(f"got {url!r}, expected ws:// or wss://, the url that `hudsim serve` printed")
    return url


def _print(name: str, tasks: list[dict[str, Any]]) -> None:
    console = stdout()
    console.print(f"[bold]{plain(name)}[/]")
    for task in tasks:
        about = task["description"].partition("\n")[0]
        console.print(f"  [cyan]{plain(task['id'])}[/]  {plain(about)}")
        table = columns(_name="left", _kind="left", _default="left")
        required = task["args"].get("required", [])
        for key, schema in task["args"].get("properties", {}).items():
            default = "required" if key in required else f"default {schema.get('default')!r}"
            table.add_row(f"    {plain(key)}", plain(_kind(schema)), f"[dim]{plain(default)}[/]")
        if table.row_count:
            console.print(table)
        if not task["reference"]:
            console.print("    [dim]no reference: `oracle` cannot solve it[/]")


def _kind(schema: dict[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    return str(schema.get("type", "any"))
