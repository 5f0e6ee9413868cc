"""``validate``: whether the tasks of an environment pay for what they should, and for nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hudsim.agents.noop import Noop
from hudsim.environment import load_environment
from hudsim.environment.task import Task
from hudsim.eval import Run, Taskset
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.taskset import OnEvent
from hudsim.graders import SubScore, Verdict
from hudsim.testing.attacks import Attack
from hudsim.testing.finding import Finding, Severity
from hudsim.testing.siege import Hold, Siege

__all__ = ["Options", "Section", "validate"]

_BY_REWARD = (Verdict.passed, Verdict.partial, Verdict.failed)
_NAMED = 3  # tests in a line


@dataclass(frozen=True)
class Section:
    """One of the questions, and what was found for each task; ``unit``: what there are so many of."""

    what: str
    unit: str
    findings: Sequence[Finding]

    @property
    def well(self) -> bool:
        """None of them is an error."""
        return all(finding.severity != "error" for finding in self.findings)


@dataclass(frozen=True)
class Options:
    """
    times
        How often each reference is tried.
    attacks
        To try on a task of each template.
    grade_timeout_s
        After which a grade counts as hung.
    watch
        Makes, of a title and how many runs there will be, what is told of them.
    """

    times: int
    attacks: Sequence[Attack]
    max_concurrent: int
    grade_timeout_s: float
    watch: Callable[[str, int], AbstractContextManager[OnEvent]]


async def validate(
    taskset: Taskset, file: Path, provider: Provider, oracle: Agent, options: Options
) -> AsyncGenerator[Section, None]:
    """Run every task untouched, then its reference again and again, then the attacks on one task of each template.

    file
        What declares the tasks' environments; ``provider`` serves them, and reveals references to ``oracle``.

    A grade that hangs, fails or is not valid is an error whoever it was for. Nothing is kept of the runs.
    """
    untouched = await _play(taskset, Noop(), provider, options, "untouched", 1)
    yield Section("nothing is paid for nothing", "task", [_untouched(run) for run in untouched])
    solved = [task for task in taskset if _has_reference(task, file)]
    runs: list[Run] = []
    if solved:
        tasks = Taskset(taskset.name, solved)
        runs = await _play(tasks, oracle, provider, options, "references", options.times)
    findings = [_reference([run for run in runs if run.slug == task.slug], task, options.times) for task in taskset]
    yield Section(f"the reference is worth 1.0, {options.times} times in {options.times}", "task", findings)
    yield Section("every hidden test can be run as it is to be", "test that cannot", list(_crossings(runs)))
    findings = []
    for run in _one_a_template(untouched):
        graded = next((one for one in runs if one.slug == run.slug and one.verdict is Verdict.passed), run)
        hold = Hold.of(None if graded.grade is None else graded.grade.subscores)
        if hold is not None and options.attacks:
            attacker = Siege(options.attacks, hold, oracle if run.task in solved else None)
            alone = Taskset(taskset.name, [run.task])
            tried = await _play(alone, attacker, provider, options, f"attacks on {run.slug}", len(attacker.trials))
            findings += [_named(run.slug, attacker.trials[one.index].finding(one, hold)) for one in tried]
    yield Section("cheats are paid nothing, and honest mess costs nothing", "attack", findings)


async def _play(
    taskset: Taskset, agent: Agent, provider: Provider, options: Options, what: str, group: int
) -> list[Run]:
    with options.watch(f"{taskset.name} · {what}", len(taskset) * group) as watch:
        job = await taskset.run(
            agent,
            runtime=provider,
            group=group,
            max_concurrent=options.max_concurrent,
            grade_timeout=options.grade_timeout_s,
            runs=None,
            on_event=watch,
        )
    return job.runs


def _untouched(run: Run) -> Finding:
    got = _words(run)
    if run.reward == 0 and run.verdict in _BY_REWARD:
        return Finding(run.slug, got, severity="ok")
    return Finding(run.slug, got, "reward 0 for an agent that does nothing")


def _reference(runs: Sequence[Run], task: Task, times: int) -> Finding:
    if not runs:
        words = f"no reference; declare one with @{task.id}.reference"
        return Finding(task.slug, words, "one, or nothing shows that it can be solved", "warning")
    bad = [run for run in runs if run.verdict is not Verdict.passed or run.end not in ("done", "max_steps")]
    if not bad:
        return Finding(task.slug, f"1.0, {len(runs)} times", severity="ok")
    rate = f"flake rate {len(bad) / times:.0%}" if len(bad) < len(runs) else "never"
    tests = Counter(leaf.name for run in bad for leaf in _leaves(run) if leaf.value < 1 and (leaf.info or {}))
    named = ", ".join(f"{name} ({count})" for name, count in tests.most_common(_NAMED))
    more = f" and {len(tests) - _NAMED} others" if len(tests) > _NAMED else ""
    failing = f"; what failed: {named}{more}" if named else ""
    return Finding(
        task.slug,
        f"1.0 in {len(runs) - len(bad)} of {times} ({rate}): {_words(bad[0])}{failing}",
        f"1.0, {times} times",
    )


def _crossings(runs: Sequence[Run]) -> Iterator[Finding]:
    """Each test once that cannot work with the solution in a process of its own, and why."""
    seen: set[tuple[str, str]] = set()
    for run in runs:
        for leaf in _leaves(run):
            why, key = (leaf.info or {}).get("crossing"), (run.task_id, leaf.name)
            if why and key not in seen:
                seen.add(key)
                file = leaf.name.partition("::")[0]
                opted = "comparable=(…) for its class, or " if str(why).startswith("opaque:") else ""
                severity: Severity = "warning" if leaf.value >= 1 else "error"
                expected = f'{opted}process={{"{file}": "same"}}'
                yield Finding(f"{run.slug}: {leaf.name}", str(why), expected, severity)


def _one_a_template(runs: Sequence[Run]) -> list[Run]:
    """The first of each that was graded."""
    found: dict[tuple[str, str], Run] = {}
    for run in runs:
        if run.grade is not None:
            found.setdefault((run.task.env, run.task_id), run)
    return list(found.values())


def _has_reference(task: Task, file: Path) -> bool:
    return load_environment(file, name=task.env).find(task.id).has_reference


def _named(slug: str, finding: Finding) -> Finding:
    return Finding(f"{slug}: {finding.what}", finding.got, finding.expected, finding.severity)


def _words(run: Run) -> str:
    reward = "none" if run.reward is None else f"{run.reward:g}"
    return f"{run.verdict}, reward {reward}" + (f": {run.error}" if run.error else "")


def _leaves(run: Run) -> Iterator[SubScore]:
    def below(parts: Sequence[SubScore] | None) -> Iterator[SubScore]:
        for part in parts or ():
            if part.children:
                yield from below(part.children)
            else:
                yield part

    return below(None if run.grade is None else run.grade.subscores)
