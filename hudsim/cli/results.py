"""A job's results for people: a line a task, then what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudsim.cli.output import columns, fitting, stdout
from hudsim.cli.words import counts, duration, marks, number, plain, styled, when

if TYPE_CHECKING:
    from rich.table import Table

    from hudsim.eval.job import Job
    from hudsim.eval.spread import Spread

    _Group = tuple[str, Spread, dict[int, dict[str, Any]]]  # its name, and by index the rows of those that are over

__all__ = ["print_job"]

_MOST_ERRORS = 5
_LISTED = 3  # names in a line
_STATES = {"spread": "green", "narrow": "yellow", "errored": "red", "partial": "red"}


def print_job(job: Job, runs: Path, *, all_errors: bool = False) -> None:
    """The job on stdout: a line a task, the rewards and verdicts, what went wrong.

    ``runs``: where it is kept. ``all_errors``: all that went wrong, not the first few alone.
    """
    console = stdout()
    groups = _groups(job)
    sizes = {len(spread.rewards) for _, spread, _ in groups}
    times = f" × {sizes.pop()}" if len(sizes) == 1 and sizes != {1} else ""
    agent = f" · [bold]{plain(job.config['agent'])}[/]" if "agent" in job.config else ""
    tasks = f"{len(groups)} task{'s' if len(groups) != 1 else ''}{times}"
    console.print(f"[bold]{plain(job.name)}[/]{agent} · {tasks} · {when(job.created_at)}\n")
    tables = [_grouped(groups), _grouped(groups, verdicts=False)] if times else [_single(groups)]
    console.print(fitting(console, *tables))
    console.print()
    summary = columns(_name="left", _words="left")
    for name, words in _summary(job):
        summary.add_row(name, words)
    where = "" if runs == Path("runs") else f" --runs {runs}"
    summary.add_row("job", f"[cyan]{job.id}[/]  [dim]hudsim show {job.id}-0{plain(where)} shows its first run[/]")
    console.print(summary)
    by_words = _errors(job)
    shown = len(by_words) if all_errors else _MOST_ERRORS
    for words, ids in list(by_words.items())[:shown]:
        console.print(_error(words, ids), soft_wrap=True)
    if len(by_words) > shown:
        more = f"[red]and {len(by_words) - shown} other errors[/]"
        console.print(f"{more}  [dim]hudsim show {job.id} --errors{plain(where)} shows them all[/]")


def _groups(job: Job) -> list[_Group]:
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for row in job.to_json()["runs"]:
        rows.setdefault(row["group"], {})[row["index"]] = row
    return [(name, spread, rows.get(f"{job.id}/{name}", {})) for name, spread in job.spread().items()]


def _grouped(groups: list[_Group], *, verdicts: bool = True) -> Table:
    """``verdicts``: how often each occurs in a group, too; the rewards show as much, but for their names."""
    titles = {"task": "left", "rewards": "left", "mean": "right", "verdicts": "left", "group": "left"}
    table = columns(**{title: side for title, side in titles.items() if verdicts or title != "verdicts"})
    for name, spread, rows in groups:
        members = [(_verdict(rows.get(index)), reward) for index, reward in enumerate(spread.rewards)]
        style = _STATES.get(spread.state, "")
        table.add_row(
            plain(name),
            marks(members),
            number(spread.mean),
            *([counts(Counter(verdict for verdict, _ in members))] if verdicts else []),
            f"[{style}]{spread.state}[/]" if style else spread.state,
        )
    return table


def _single(groups: list[_Group]) -> Table:
    table = columns(task="left", reward="right", verdict="left", took="right")
    for name, spread, rows in groups:
        row = rows.get(0)
        took = "" if row is None else duration(row["seconds"])
        table.add_row(plain(name), number(spread.rewards[0]), styled(_verdict(row)), took)
    return table


def _verdict(row: Mapping[str, Any] | None) -> str:
    return "missing" if row is None else str(row["verdict"])


def _summary(job: Job) -> Iterator[tuple[str, str]]:
    from hudsim.eval.spread import spread_words

    if job.complete:
        yield "reward", f"[bold]{number(job.reward)}[/]"
    elif not job.ran:
        yield "reward", f"none: 0 of {job.expected} runs count"
    else:
        over = f"over the {job.ran} of {job.expected} runs that count, {number(job.mean_over_all)} if the others are 0"
        yield "reward", f"[bold]{number(job.reward)}[/] {over}"
    yield "verdicts", counts(job.verdicts)
    spreads = job.spread()
    if any(len(spread.rewards) > 1 for spread in spreads.values()):
        yield "passes", _passes(job)
        yield "spread", plain(spread_words(spreads))


def _passes(job: Job) -> str:
    """The chance that of k tries one passes, for 1 and the largest group."""
    from hudsim.errors import UsageError

    said = []
    for k in (1, max(len(spread.rewards) for spread in job.spread().values())):
        try:
            found = job.pass_at(k)
        except UsageError:  # no task has so many runs that count
            continue
        without = f" ({len(found.left_out)} of the tasks left out)" if found.left_out else ""
        said.append(f"pass@{k} {number(found.value)}{without}")
    return ", ".join(said) or "–"


def _errors(job: Job) -> dict[str, list[str]]:
    """What went wrong, and in which runs: first in those that do not count, then agents that raised."""
    by_words: dict[str, list[str]] = {}
    for run in sorted(job.runs, key=lambda run: run.valid):
        if run.error is not None:
            by_words.setdefault(f"{run.verdict}: {run.error}", []).append(run.id)
    return by_words


def _error(words: str, ids: list[str]) -> str:
    verdict, _, rest = words.partition(": ")
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return f"[red]{', '.join(ids[:_LISTED])}{more}: {verdict}:[/] {plain(rest)}"
