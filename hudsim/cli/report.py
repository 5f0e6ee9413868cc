"""A run's report as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudsim.cli.output import columns, stdout

if TYPE_CHECKING:
    from hudsim.robot.run import EpisodeReport, RunReport

__all__ = ["print_report"]

_MOST = 10  # episodes that are listed one by one
_MOST_FILES = 4

_STAGES = {
    "step": "the simulator advances",
    "render": "it makes the observation, cameras included",
    "encode": "check and serialise",
    "wire": "ready to send → received",
    "adapt": "the policy's adapter",
    "infer": "the policy's model",
    "apply": "action arrived → its step starts",
}


def print_report(report: RunReport) -> None:
    """The run on stdout: how it went, how the rate was kept, where the time went, what was kept."""
    console = stdout()
    names = f"[bold]{_plain(report.world)}[/] · policy [bold]{_plain(report.policy)}[/]"
    console.print(f"{names} · {report.mode} · {report.transport}")
    summary = columns(_name="left", _words="left")
    for name, words in [*_outcome(report), *_rate(report)]:
        summary.add_row(name, words)
    console.print(summary)
    if 1 < len(report.episodes) <= _MOST:
        console.print()
        console.print(_episodes(report.episodes))
    if stages := _stages(report):
        console.print()
        console.print(stages)
    for episode in report.episodes:
        words = episode.error or episode.record["message"]
        if words:
            console.print(f"[red]seed {episode.record['seed']}: {_plain(episode.record['end'])}:[/] {_plain(words)}")
    for words in report.problems:
        console.print(f"[red]{_plain(words)}[/]")
    for words in _kept(report.artifacts):
        console.print(_plain(words))


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
        ("ends", _plain(", ".join(f"{end} {count}" for end, count in ends.most_common()) or "none")),
    ]
    if clipped:
        lines.append(("clipped", f"{clipped} numbers of actions were out of range"))
    return lines


def _silent(report: RunReport) -> str:
    return "the world does not say" if report.valid else "no episode that says anything about the policy"


def _mean(report: RunReport) -> str:
    return " on average" if len(report.valid) > 1 else ""


def _rate(report: RunReport) -> list[tuple[str, str]]:
    cadence = report.cadence.summary()
    ticks, achieved, asked = cadence["ticks"], cadence["rate_achieved_hz"], cadence["rate_asked_hz"]
    if not ticks:
        return []
    lines = [("ticks", str(ticks))]
    if achieved is not None:
        how = "as fast as it goes" if asked is None else f"{asked:g} asked"
        lines.append(("rate", f"{achieved:.2f} Hz, {how}"))
    if asked is not None:
        lines.append(
            ("missed", f"{cadence['missed']} deadlines ({cadence['missed'] / (ticks + cadence['missed']):.2%})")
        )
    if (late := cadence["late_us"]) is not None:
        lines.append(("lateness", "  ".join(f"{q} {late[q] / 1e3:.3f}" for q in ("p50", "p99", "max")) + " ms"))
    if report.mode == "realtime":
        lines.append(("starved", f"{cadence['starved']} ticks without an action"))
        lines.append(("unused", f"{cadence['stale']} stale chunks, {cadence['skipped']} skipped observations"))
        if (age := cadence["action_age_ticks"]) is not None:
            lines.append(("age", f"actions of observations {age['p50']} ticks old (p50), {age['max']} at most"))
    return lines


def _episodes(episodes: Iterable[EpisodeReport]) -> Any:
    table = columns(seed="right", success="left", end="left", reward="right", ticks="right")
    for episode in episodes:
        record = episode.record
        reward = record["total_reward"]
        table.add_row(
            str(record["seed"]),
            _WORDS[record["success"]],
            _plain(record["end"]),
            "" if reward is None else f"{reward:.4g}",
            str(record["ticks"]),
        )
    return table


_WORDS = {True: "[green]yes[/]", False: "[yellow]no[/]", None: "–"}


def _stages(report: RunReport) -> Any:
    """The latency budget; None if nothing was measured."""
    stages = {name: us for name, us in report.cadence.summary()["stages_us"].items() if us is not None}
    if not stages:
        return None
    table = columns(ms="left", p50="right", p99="right", max="right", _="left")
    for name, us in stages.items():
        table.add_row(name, *(f"{us[q] / 1e3:.3f}" for q in ("p50", "p99", "max")), f"[dim]{_STAGES.get(name, '')}[/]")
    return table


def _plain(words: Any) -> str:
    """Words of others, so that a bracket in them is not taken for a colour."""
    from rich.markup import escape

    return escape(str(words))
