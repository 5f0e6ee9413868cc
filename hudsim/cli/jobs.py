"""``hudsim jobs``: what was kept; and runs that are taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, Runs, typed
from hudsim.cli.output import columns, emit_json, fitting, stdout, tell
from hudsim.cli.words import about_when, counts, number, plain
from hudsim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from hudsim.eval import Run
    from hudsim.eval.jobrow import JobSummary

__all__ = ["commands"]

commands = typer.Typer(help="The jobs that were kept.", invoke_without_command=True, rich_markup_mode=None)


@commands.callback()
def jobs(context: typer.Context, *, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """List the jobs that were kept, newest first."""
    if context.invoked_subcommand is not None:
        for option, _, _ in typed(context):
            raise UsageError(f"{option} goes behind the word {context.invoked_subcommand}")
        return
    from hudsim import loop

    found = loop.run(_listed(runs))
    if as_json:
        emit_json({"jobs": [_document(summary) for summary in found]})
        return
    console = stdout()
    console.print(fitting(console, _table(found, verdicts=True), _table(found, verdicts=False)))


@commands.command()
def invalidate(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Runs of one job, as in last-3."),
    ],
    *,
    because: Annotated[str, typer.Option(metavar="TEXT", help="Why they say nothing about the agent.")],
    runs: Runs = Path("runs"),
) -> None:
    """Take runs back: they count no more, and are made again.

    For whoever knows that they say nothing about the agent: its model's server was down. What each had come to, and
    TEXT, stays in its record. `hudsim eval … --resume JOB` makes them again.
    """
    from hudsim import loop

    taken = loop.run(_invalidated(names, because, runs))
    for run in taken:
        was = run.attempts[-1]
        tell(f"{run.id} {run.slug}[{run.index}]: {was['verdict']}, reward {number(was['reward'])}, counts no more")


def _table(found: Sequence[JobSummary], *, verdicts: bool) -> Table:
    titles = {"job": "left", "when": "left", "what": "left", "agent": "left", "count": "right", "reward": "right"}
    table = columns(**titles, **({"verdicts": "left"} if verdicts else {}))
    for summary in found:
        table.add_row(
            f"[cyan]{summary.job.id}[/]",
            about_when(summary.job.created_at),
            plain(summary.job.name),
            plain(summary.config.get("agent", "")),
            f"{summary.ran}/{summary.expected}",
            number(summary.reward),
            *([counts(summary.verdicts)] if verdicts else []),
        )
    return table


async def _listed(runs: Path) -> list[JobSummary]:
    from hudsim.eval.store import Store

    async with Store(runs) as store:
        return await store.jobs()


async def _invalidated(names: Sequence[str], because: str, runs: Path) -> list[Run]:
    from hudsim.eval.job import Job
    from hudsim.eval.store import Store

    wanted: dict[str, Run] = {}
    async with Store(runs) as store:
        for name in names:
            run = await store.find_run(name)
            wanted[run.id] = run
    jobs = sorted({run.job_id for run in wanted.values()})
    if len(jobs) != 1:
        raise UsageError(f"got runs of the jobs {', '.join(jobs)}, expected those of one")
    async with await Job.resume(jobs[0], runs=runs) as job:
        return await job.invalidate(list(wanted.values()), because=because)


def _document(summary: JobSummary) -> dict[str, Any]:
    return {
        "job": summary.job.id,
        "name": summary.job.name,
        "created_at": summary.job.created_at,
        "config": summary.config,
        "group": summary.job.group,
        "expected": summary.expected,
        "ran": summary.ran,
        "reward": summary.reward,
        "verdicts": dict(summary.verdicts),
    }
