"""``hudsim task``: what tasks there are, and one of them by hand: start, work, grade."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, read_settings
from hudsim.cli.output import emit_json, say
from hudsim.cli.task_list import Listed, print_listed, print_sessions
from hudsim.errors import UsageError

if TYPE_CHECKING:
    from hudsim.environment import ControlClient
    from hudsim.eval.protocols import Agent
    from hudsim.eval.work import Left

__all__ = ["commands"]

commands = typer.Typer(
    help="The tasks of an environment, and one of them by hand.", no_args_is_help=True, rich_markup_mode=None
)

_PARK_S = 3600.0

Url = Annotated[str, typer.Argument(metavar="URL", help="What `hudsim serve` printed.")]
SessionId = Annotated[
    str, typer.Option("--session", metavar="ID", help="What `hudsim task start` printed, or `hudsim task sessions`.")
]


@commands.command("list")
def list_(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="An environment from `hudsim list`, FILE.py, FILE.jsonl, a folder or ws://…"
        ),
    ],
    *,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="Which, where there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """List an environment's templates and tasks.

    Of each template what it takes, of each task the slug that `hudsim eval … --task` takes. Of a server there are
    templates alone: which tasks are made of them is for the caller to say.
    """
    from hudsim import loop, registry
    from hudsim.cli.environments import find_environment, find_tasks

    if registry.is_url(target):
        if env is not None:
            raise UsageError(f"--env {env}: a server has one environment")
        listed = loop.run(_served(target))
    else:
        environment = find_environment(target, env)
        templates = [template.manifest() for template in environment.templates.values()]
        tasks = [task.to_row() for task in find_tasks(target) if task.env == environment.name]
        listed = Listed(environment.name, templates, tasks)
    if as_json:
        emit_json(listed.to_json())
    else:
        print_listed(listed)


@commands.command()
def sessions(url: Url, *, as_json: AsJson = False) -> None:
    """List who works on a served environment.

    Its sessions: the task of each, for how long, what it waits for, and whether its peer is connected.
    """
    from hudsim import loop

    found = loop.run(_sessions(_served_at(url)))
    if as_json:
        emit_json({"sessions": found})
    else:
        print_sessions(found)


@commands.command()
def start(
    url: Url,
    task: Annotated[str, typer.Argument(metavar="ID", help="A template's id, from `hudsim task list URL`.")],
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

    emit_json(started := loop.run(_start(_served_at(url), task, read_settings(settings))))
    say(f"to have it worked on:\n  {_command('play', url, started['session'])} AGENT")
    say(f"to grade it:\n  {_command('grade', url, started['session'])}")


@commands.command()
def play(
    url: Url,
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="An agent or policy from `hudsim list`, module:attr or file.py:attr.")
    ],
    *,
    session: SessionId,
    agent_settings: Annotated[
        list[str] | None, typer.Option("--agent-set", metavar="KEY=VALUE", help="An argument of the agent.")
    ] = None,
) -> None:
    """Have an agent work on a task that was started.

    It is left to be graded. Prints JSON: how the agent ended, its answer, its steps.

    Exit code 1 if it raised or lost what it worked on.
    """
    from hudsim import loop, registry

    made = registry.agent(agent, read_settings(agent_settings))
    left = loop.run(_play(_served_at(url), session, made))
    steps = [step.to_json() for step in left.steps]
    emit_json({"session": session, "end": left.end, "error": left.error, "answer": left.answer, "steps": steps})
    answer = left.answer if isinstance(left.answer, str | None) else json.dumps(left.answer)
    given = [] if answer is None else ["--answer", answer]
    say(f"to grade it:\n  {_command('grade', url, session, *given)}")
    raise typer.Exit(1 if left.end in ("error", "lost") else 0)


@commands.command()
def grade(
    url: Url,
    *,
    session: SessionId,
    answer: Annotated[str | None, typer.Option(metavar="TEXT", help="The answer.", show_default="none")] = None,
) -> None:
    """Grade a task that was started; prints the grade as JSON."""
    from hudsim import loop

    emit_json(loop.run(_grade(_served_at(url), session, answer)))


@commands.command()
def cancel(url: Url, *, session: SessionId) -> None:
    """End a session and its task, ungraded.

    Whoever has it: its slots are free then, and a run that works on it ends as an error.
    """
    from hudsim import loop

    emit_json({"session": session, "cancelled": loop.run(_cancel(_served_at(url), session))})


async def _served(url: str) -> Listed:
    async with await _client(url) as control:
        return Listed(control.environment, await control.list_tasks(), None)


async def _sessions(url: str) -> list[dict[str, Any]]:
    async with await _client(url) as control:
        return [told for told in await control.sessions() if told["session"] != control.session_id]


async def _start(url: str, task: str, args: dict[str, Any]) -> dict[str, Any]:
    from hudsim.eval.waiting import follow

    control = await _client(url, park_s=_PARK_S)
    waiting = asyncio.create_task(follow(control, _say_what_for))
    try:
        started = await control.start(task, args)
    except BaseException:
        await control.close()
        raise
    finally:
        waiting.cancel()
    await control.drop()
    capabilities = [capability.to_manifest() for capability in control.capabilities.values()]
    return {"session": control.session_id, **started, "capabilities": capabilities}


def _say_what_for(what: str | None) -> None:
    if what is not None:
        say(f"it waits for a slot of {what} (`hudsim task sessions URL` lists them)")


async def _play(url: str, session: str, agent: Agent) -> Left:
    from hudsim.eval.by_hand import play

    control = await _client(url, session_id=session, park_s=_PARK_S)
    try:
        return await play(control, agent)
    finally:
        await control.drop()


async def _grade(url: str, session: str, answer: str | None) -> dict[str, Any]:
    async with await _client(url, session_id=session) as control:
        return await control.grade(answer)


async def _cancel(url: str, session: str) -> bool:
    async with await _client(url) as control:
        return await control.cancel_session(session)


async def _client(url: str, **options: Any) -> ControlClient:
    from hudsim.environment import ControlClient

    return await ControlClient.connect(url, **options)


def _served_at(url: str) -> str:
    from hudsim import registry

    if not registry.is_url(url):
        raise UsageError(f"got {url!r}, expected ws:// or wss://, the url that `hudsim serve` printed")
    return url


def _command(verb: str, url: str, session: str, *more: str) -> str:
    return shlex.join(["hudsim", "task", verb, url, "--session", session, *more])
