"""``hudsim jobs``: what has run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudsim.cli.options import AsJson, Runs
from hudsim.cli.output import columns, emit_json, stdout
from hudsim.cli.words import about_when, counts, number, plain

if TYPE_CHECKING:
    from hudsim.eval.jobrow import JobSummary

__all__ = ["jobs"]


def jobs(*, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """List the jobs that were kept, newest first."""
    from hudsim import loop

    found = loop.run(_listed(runs))
    if as_json:
        emit_json({"jobs": [_document(summary) for summary in found]})
        return
    table = columns(job="left", when="left", what="left", agent="left", ran="right", reward="right", verdicts="left")
    for summary in found:
        table.add_row(
            f"[cyan]{summary.job.id}[/]",
            about_when(summary.job.created_at),
            plain(summary.job.name),
            plain(summary.config.get("agent", "")),
            f"{summary.ran}/{summary.expected}",
            number(summary.reward),
            counts(summary.verdicts),
        )
    stdout().print(table)


async def _listed(runs: Path) -> list[JobSummary]:
    from hudsim.eval.store import Store

    async with Store(runs) as store:
        return await store.jobs()


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
