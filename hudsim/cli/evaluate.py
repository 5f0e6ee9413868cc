"""``hudsim eval``: an agent through graded tasks, each many times."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, Runs, read_settings, typed
from hudsim.cli.output import emit_json, say
from hudsim.errors import HudsimError, LinkError, UnknownName, UsageError

if TYPE_CHECKING:
    from hudsim.eval import Job, Taskset
    from hudsim.eval.protocols import Agent, Provider

__all__ = ["eval_"]

_RUNTIMES = ("local", "subprocess")
_Words = list[str] | None


def eval_(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="An environment from `hudsim list`, a folder, FILE.py, FILE.json or FILE.jsonl."
        ),
    ],
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="An agent or policy from `hudsim list`, module:attr or file.py:attr.")
    ],
    *,
    group: Annotated[
        int | None, typer.Option("--group", "-g", metavar="N", min=1, help="Runs a task.", show_default="1")
    ] = None,
    max_concurrent: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at once.")] = 4,
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Runs that share a call of the policy's model, at most.", show_default="no sharing"
        ),
    ] = None,
    tasks: Annotated[
        _Words, typer.Option("--task", metavar="SLUG,…", help="These tasks alone.", show_default="all")
    ] = None,
    runtime: Annotated[
        str,
        typer.Option(
            metavar="|".join((*_RUNTIMES, "ws://…")),
            help="Where the environment runs: in this process, in one of its own, or where it is served already.",
        ),
    ] = "local",
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0.001, max=1e6, help="Seconds for the agent's part of a run.", show_default="no end"
        ),
    ] = None,
    rollout_timeout: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.001, max=1e6, help="Seconds for a whole run.", show_default="no end"),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="JOB", help="Run what is missing in a job; `last` is the newest.")
    ] = None,
    settings: Annotated[
        _Words,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the environment; VALUE is JSON or a word."),
    ] = None,
    agent_settings: Annotated[
        _Words, typer.Option("--agent-set", metavar="KEY=VALUE", help="An argument of the agent.")
    ] = None,
    env: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file that declares the environments of FILE.jsonl's tasks.")
    ] = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run an agent through graded tasks.

    Every finished run is kept; a job that was broken off goes on with --resume.

    Exit code 0 if every run has a verdict, whatever it is; 1 if one has none; 2 for usage.
    """
    from hudsim import loop, registry

    made = registry.agent(agent, read_settings(agent_settings))
    if batch is not None:
        made = _batched(agent, made, batch)
    found = registry.taskset(source, env=env)
    taskset = _chosen(found.taskset, tasks)
    given = read_settings(settings)
    place = _provider(runtime, found.file, given, made)
    asked = _Asked(
        agent=agent,
        group=group,
        resume=resume,
        runs=runs,
        options={"max_concurrent": max_concurrent, "timeout": timeout, "rollout_timeout": rollout_timeout},
        config={"source": source, "agent": agent, "agent_settings": read_settings(agent_settings), "settings": given},
    )
    kept = _Kept(context)
    try:
        job = loop.run(_play(taskset, made, place, asked, kept))
    except KeyboardInterrupt:
        if kept.job is None:
            raise
        raise typer.Exit(130) from None  # it has been said
    except HudsimError as error:
        if kept.job is not None and not isinstance(error, UsageError):
            say(f"broken off{kept.words()}")
        raise
    if as_json:
        emit_json(job.to_json())
    else:
        from hudsim.cli.results import print_job

        print_job(job, runs)
    if not job.complete:
        say(f"{_account(job)}; to make the others:\n  {resume_command(context, job.id)}")
    raise typer.Exit(0 if job.complete else 1)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for."""

    agent: str
    group: int | None
    resume: str | None
    runs: Path
    options: dict[str, Any]
    config: dict[str, Any]

    async def job(self, name: str) -> Job:
        """A new job, or the one to be resumed."""
        from hudsim.eval.job import Job

        if self.resume is not None:
            return await Job.resume(self.resume, runs=self.runs)
        return await Job.start(name, group=self.group or 1, runs=self.runs)


@dataclass(slots=True)
class _Kept:
    """The job as soon as there is one: what there is to go on with, whatever happens."""

    context: typer.Context
    job: Job | None = None

    def words(self) -> str:
        """What was kept, and the command that goes on."""
        if self.job is None:
            return ""
        return (
            f": {_account(self.job)}, and what ended is kept; to go on:\n  {resume_command(self.context, self.job.id)}"
        )


def _account(job: Job) -> str:
    """How many runs count, and what became of the others."""
    errors = len(job.errors)
    missing = job.expected - job.ran - errors
    words = [f"{job.ran} of {job.expected} runs count"]
    words += [f"{errors} ended as errors"] if errors else []
    words += [f"{missing} did not end"] if missing else []
    return ", ".join(words)


async def _play(taskset: Taskset, agent: Agent, place: Provider, asked: _Asked, kept: _Kept) -> Job:
    """Run it. An interrupt is said at once: an agent that does not let itself be stopped may take the time for it."""
    from hudsim.cli.watch import Watch

    await _check(taskset, agent, place)
    async with await asked.job(taskset.name) as job:
        kept.job = job
        group = asked.group or job.group
        before = [run for run in job.runs if run.valid]
        with Watch(f"{taskset.name} · {asked.agent}", len(taskset) * group, before) as watch:
            work = asyncio.create_task(
                taskset.run(
                    agent, runtime=place, group=group, job=job, config=asked.config, on_event=watch, **asked.options
                )
            )
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                watch.stop()
                say(f"interrupted{kept.words()}")
                work.cancel()
                await asyncio.wait({work})
                raise


async def _check(taskset: Taskset, agent: Agent, place: Provider) -> None:
    """Whether the tasks can run there, before there is a job. Raises :class:`~hudsim.errors.UsageError`."""
    from hudsim.eval.plugged import versions_of

    try:
        await versions_of(place, list(taskset), agent)
    except LinkError as error:
        raise UsageError(f"--runtime: {error.message}") from error


def _batched(name: str, agent: Agent, batch: int) -> Agent:
    """The agent with one model for many runs. Raises :class:`~hudsim.errors.UsageError` for one without a model."""
    from hudsim.robot.agent import RobotAgent

    if not isinstance(agent, RobotAgent):
        raise UsageError(f"--batch: agent {name} is of type {type(agent).__name__}; expected a policy or a RobotAgent")
    return agent.batched(batch)


def _chosen(taskset: Taskset, slugs: _Words) -> Taskset:
    """Those of ``slugs``, each of which may be several with commas; all without any."""
    if not slugs:
        return taskset
    wanted = [slug.strip() for words in slugs for slug in words.split(",") if slug.strip()]
    if not wanted:
        raise UsageError(f"--task: got {','.join(slugs)!r}, expected a task's slug, as in {next(iter(taskset.tasks))}")
    for slug in wanted:
        if slug not in taskset.tasks:
            raise UnknownName("task", slug, taskset.tasks)
    return taskset.filter(wanted)


def _provider(words: str, file: Path, settings: dict[str, Any], agent: Agent) -> Provider:
    """Where the environment runs. Raises :class:`~hudsim.errors.UsageError` for another word than there are."""
    from hudsim import registry

    reveal = bool(getattr(agent, "needs_reference", False))
    if registry.is_url(words):
        if settings:
            raise UsageError("--set is the environment's, which is served already: give it to `hudsim serve`")
        from hudsim.eval.runtime import Runtime

        return Runtime(words)
    if words == "local":
        from hudsim.eval.local_runtime import LocalRuntime

        return LocalRuntime(file, settings=settings, reveal=reveal)
    if words == "subprocess":
        from hudsim.eval.subprocess_runtime import SubprocessRuntime

        return SubprocessRuntime(file, settings=settings, reveal=reveal)
    raise UnknownName("runtime", words, [*_RUNTIMES, "ws://…"])


def resume_command(context: typer.Context, job_id: str) -> str:
    """The command that runs what is missing in a job: the same words again, and the job."""
    words: list[str] = []
    for option, name, value in typed(context):
        if name == "resume" or value is False:
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [option] * bool(option)
            words += [] if one is True else [str(one)]
    return shlex.join(["hudsim", "eval", *words, "--resume", job_id])
