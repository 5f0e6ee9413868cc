"""``hudsim show``: one job, or one run of it, as it was kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hudsim.cli.options import AsJson, Runs
from hudsim.cli.output import emit_json

if TYPE_CHECKING:
    from hudsim.eval import Job, Run

__all__ = ["show"]


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="JOB|RUN", help="An id or how it begins, `last` for the newest job, last-3 for its run 3."
        ),
    ],
    *,
    errors: Annotated[
        bool, typer.Option("--errors", help="Of a job: all that went wrong, not the first five.")
    ] = False,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Show a job, or one run of it.

    Of a run: what was asked and answered, the parts of its reward, its steps and their times.
    """
    from hudsim import loop

    if "-" not in what:
        job = loop.run(_job(what, runs))
        if as_json:
            emit_json(job.to_json())
        else:
            from hudsim.cli.results import print_job

            print_job(job, runs, all_errors=errors)
        return
    run, agent = loop.run(_run(what, runs))
    if as_json:
        emit_json({**run.to_row(), "trace": run.trace.to_json()})
    else:
        from hudsim.cli.run_page import print_run

        print_run(run, agent)


async def _job(name: str, runs: Path) -> Job:
    from hudsim.eval.job import Job

    return await Job.load(name, runs=runs)


async def _run(name: str, runs: Path) -> tuple[Run, str | None]:
    """The run, and its agent's name."""
    from hudsim.eval.store import Store

    async with Store(runs) as store:
        run = await store.find_run(name)
        job = await store.load(run.job_id)
        return run, next((batch.config.get("agent") for batch in job.batches), None)
