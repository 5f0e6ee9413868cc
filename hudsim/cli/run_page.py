"""One graded run as a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hudsim.cli.cadence import rate_lines, stages_table
from hudsim.cli.output import columns, stdout
from hudsim.cli.run_work import command_words, file_diffs, is_test, test_counts, tests_table, trust_words
from hudsim.cli.words import arguments, duration, number, plain, styled, when

if TYPE_CHECKING:
    from rich.tree import Tree

    from hudsim.eval import Run, Step
    from hudsim.graders import SubScore

__all__ = ["print_run"]

_SHORT = 400  # characters of a step's words; the JSON has all
_OWN = ("cadence", "traceback", "changes", "left_out")  # of a step's data: shown by themselves
_QUIET = ("trust", "outcomes", "seconds")  # of a part's info: said elsewhere
_ENDS = {
    None: "never began",
    "done": "done",
    "max_steps": "had its max_steps",
    "timeout": "ran out of time",
    "error": "raised",
    "lost": "lost what it worked on",
}


def print_run(run: Run, agent: str | None) -> None:
    """The run on stdout: its verdict, what was asked and answered, the reward's parts, the steps, the cadence.

    ``agent``: its name, as the job has it. None: unknown.
    """
    console = stdout()
    console.print(
        f"[bold]{plain(run.slug)}[{run.index}][/] · run {run.id} · {plain(run.task.env)}/{plain(run.task_id)}"
    )
    facts = columns(_name="left", _words="left")
    for name, words in _facts(run, agent):
        facts.add_row(name, words)
    console.print(facts)
    if run.error is not None:
        console.print(f"[red]{plain(run.error)}[/]")
    for part in (_tree(run), _steps(run), *_files(run), _tests(run), *_cadences(run), _attempts(run)):
        if part is not None:
            console.print()
            console.print(part)


def _facts(run: Run, agent: str | None) -> Iterator[tuple[str, str]]:
    verdict = str(run.verdict)
    yield "verdict", f"{styled(verdict)}, reward {number(run.reward)}"
    yield "agent", f"{plain(agent or 'unknown')}: {_ENDS[run.end]}, {duration(run.seconds)} with starting and grading"
    if run.started_at:
        yield "started", when(run.started_at)
    if run.task.args:
        yield "args", plain(arguments(run.task.args))
    yield "prompt", plain(_cut(run.prompt_text) or "none")
    answer = run.trace.content
    yield "answer", "[dim]none[/]" if answer is None else plain(_cut(_text(answer)))
    if run.grade is not None and run.grade.content and run.grade.content != run.error:
        yield "grade", plain(_cut(run.grade.content))
    if run.grade is not None and (info := {k: v for k, v in run.grade.info.items() if k not in _OWN}):
        yield "info", plain(_cut(arguments(info)))
    if run.grade is not None and (ways := trust_words(run.grade.subscores or ())):
        yield "not stopped", f"[dim]{len(ways)} ways to cheat, see docs/coding.md or --json[/]"
    for words in [] if run.grade is None else run.grade.problems():
        yield "[yellow]beware[/]", f"[yellow]{plain(words)}[/]"


def _tree(run: Run) -> Tree | None:
    """What the reward was made of; None if that was not said."""
    if run.grade is None or not run.grade.subscores:
        return None
    from rich.tree import Tree

    tree = Tree(f"reward [bold]{number(run.reward)}[/]", guide_style="dim")

    def grow(branch: Tree, parts: list[SubScore]) -> None:
        tests = [part for part in parts if is_test(part)]
        parts = [part for part in parts if not is_test(part)]
        if tests:
            branch.add(test_counts(tests))
        wide = max((len(part.name) for part in parts), default=0)
        for part in parts:
            share = styled(
                "passed" if part.value >= 1 else "failed" if part.value <= 0 else "partial", number(part.value)
            )
            node = branch.add(f"{plain(part.name.ljust(wide))}  {share} [dim]× {part.weight:.3g}[/]{_said(part.info)}")
            grow(node, part.children) if part.children else None

    grow(tree, run.grade.subscores)
    return tree


def _said(info: Mapping[str, Any] | None) -> str:
    loud = {key: value for key, value in (info or {}).items() if key not in _QUIET and value and key[:1] != "_"}
    return f"  [dim]{plain(_cut(arguments(loud), 120))}[/]" if loud else ""


def _tests(run: Run) -> Any:
    return None if run.grade is None else tests_table(run.grade.subscores or ())


def _steps(run: Run) -> Any:
    if not run.trace.steps:
        return None
    table = columns(seconds="right", took="right", source="left", step="left")
    for step in run.trace.steps:
        began_s, ended_s = step.started_s or 0.0, step.ended_s or 0.0
        took = duration(ended_s - began_s) if ended_s > began_s else ""
        words = _step(step)
        if "command" in step.data:
            took, words = command_words(step.data)
        table.add_row(f"{began_s:.2f}", took, f"[cyan]{plain(step.source)}[/]", words)
    return table


def _files(run: Run) -> Iterator[Any]:
    for step in run.trace.steps:
        if isinstance(step.data.get("changes"), list):
            yield from file_diffs(step.data)


def _step(step: Step) -> str:
    said = [plain(_cut(step.content))] if step.content else []
    if data := {key: value for key, value in step.data.items() if key not in _OWN and value is not None}:
        said.append(f"[dim]{plain(_cut(arguments(data)))}[/]")
    if step.error:
        said.append(f"[red]{plain(step.error)}[/]")
    if trace := step.data.get("traceback"):
        said.append(f"[dim]{plain(str(trace).rstrip())}[/]")
    return "\n".join(said)


def _cadences(run: Run) -> Iterator[Any]:
    """How well the rate was kept, of each robot that was played."""
    for step in run.trace.steps:
        cadence = step.data.get("cadence")
        if isinstance(cadence, Mapping) and "stages_us" in cadence:
            age = cadence["action_age_ticks"] or {"max": 0}
            realtime = bool(age["max"] or cadence["starved"] or cadence["stale"] or cadence["skipped"])
            facts = columns(_name="left", _words="left")
            for name, words in rate_lines(cadence, realtime=realtime):
                facts.add_row(name, words)
            yield facts if facts.row_count else None
            yield stages_table(cadence)


def _attempts(run: Run) -> Any:
    if not run.attempts:
        return None
    table = columns(attempt="right", verdict="left", error="left")
    for count, attempt in enumerate(run.attempts, 1):
        because = attempt.get("because")
        words = attempt.get("error") if because is None else f"taken back: {because}"
        table.add_row(str(count), styled(str(attempt.get("verdict"))), plain(words or ""))
    return table


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _cut(words: str, length: int = _SHORT) -> str:
    return words if len(words) <= length else f"{words[:length]} … {len(words)} characters"
