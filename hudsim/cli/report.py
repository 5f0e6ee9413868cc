"""A run's report as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudsim.cli.cadence import rate_lines, stages_table
from hudsim.cli.output import columns, stdout
from hudsim.cli.words import plain

if TYPE_CHECKING:
    from hudsim.robot.run import EpisodeReport, RunReport

__all__ = ["print_report"]

_MOST = 10  # episodes that are listed one by one
_MOST_FILES = 4


def print_report(report: RunReport) -> None:
    """The run on stdout: how it went, how the rate was kept, where the time went, what was kept."""
    console = stdout()
    names = f"[bold]{plain(report.world)}[/] · policy [bold]{plain(report.policy)}[/]"
    encodings = "".join(f" · {plain(camera)} {plain(word)}" for camera, word in report.encodings.items())
    console.print(f"{names} · {report.mode} · {report.transport}{encodings}")
    cadence = report.cadence.summary()
    summary = columns(_name="left", _words="left")
    for name, words in [*_outcome(report), *rate_lines(cadence, realtime=report.mode == "realtime")]:
        summary.add_row(name, words)
    console.print(summary)
    if 1 < len(report.episodes) <= _MOST:
        console.print()
        console.print(_episodes(report.episodes))
    if stages := stages_table(cadence):
        console.print()
        console.print(stages)
    for episode in report.episodes:
        words = episode.error or episode.record["message"]
        if words:
            console.print(f"[red]seed {episode.record['seed']}: {plain(episode.record['end'])}:[/] {plain(words)}")
    for words in report.problems:
        console.print(f"[red]{plain(words)}[/]")
    for words in _kept(report.artifacts):
        console.print(plain(words))


def _kept(artifacts: list[str]) -> list[str]:
    if len(artifacts) <= _MOST_FILES:
        return [f"kept {path}" for path in artifacts]
    return [f"kept {len(artifacts)} files in {Path(artifacts[0]).parent}"]


def _outcome(report: RunReport) -> list[tuple[str, str]]:
    said = [episode for episode in report.valid if episode.record["success"] is not None]
    good = sum(bool(episode.record["success"]) for episode in said)
    ends = Counter(str(episode.record["end"]) for episode in report.episodes)
    clipped = sum(sum(episode.record["clipped"] or []) for episode in report.episodes)
    lines = [
        ("success", f"{good} of {len(said)} ({good / len(said):.0%})" if said else _silent(report)),
        ("reward", "none" if report.mean_reward is None else f"{report.mean_reward:.4g}{_mean(report)}"),
        ("ends", plain(", ".join(f"{end} {count}" for end, count in ends.most_common()) or "none")),
    ]
    if clipped:
        lines.append(("clipped", f"{clipped} numbers of actions were out of range"))
    return lines


def _silent(report: RunReport) -> str:
    return "the world does not say" if report.valid else "no episode that says anything about the policy"


def _mean(report: RunReport) -> str:
    return " on average" if len(report.valid) > 1 else ""


def _episodes(episodes: Iterable[EpisodeReport]) -> Any:
    table = columns(seed="right", success="left", end="left", reward="right", ticks="right")
    for episode in episodes:
        record = episode.record
        reward = record["total_reward"]
        table.add_row(
            str(record["seed"]),
            _WORDS[record["success"]],
            plain(record["end"]),
            "" if reward is None else f"{reward:.4g}",
            str(record["ticks"]),
        )
    return table


_WORDS = {True: "[green]yes[/]", False: "[yellow]no[/]", None: "–"}
