"""What an agent did in a workspace, and how its work was graded, for people: commands, files, tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudsim.cli.output import columns
from hudsim.cli.words import duration, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hudsim.graders import SubScore

__all__ = ["command_words", "file_diffs", "is_test", "test_counts", "tests_table", "trust_words"]

_LINES, _WIDE = 12, 200  # of what a command printed, and of a test's message
_DIFF_LINES = 400
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_OUTCOMES = {"passed": "green", "skipped": "yellow", "xfailed": "yellow"}  # all others are alarming


def command_words(data: Mapping[str, Any]) -> tuple[str, str]:
    """How long a command took, and its page: the line, how it ended, and the end of what it printed."""
    code = data.get("code")
    ended = "" if code == 0 else f"  [red]{'timed out' if data.get('timed_out') else f'exit code {code}'}[/]"
    said = [f"[bold]$[/] {plain(data['command'])}{ended}"]
    said += [f"[dim]{plain(line)}[/]" for line in _last(str(data.get("stdout") or ""))]
    said += [f"[dim red]{plain(line)}[/]" for line in _last(str(data.get("stderr") or ""))]
    return duration(float(data.get("seconds") or 0.0)), "\n".join(said)


def file_diffs(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Of a step that says which files changed, as ``filetracking/1`` does."""
    for change in data["changes"]:
        size = "" if change.get("size") is None else f", {change['size']:,} bytes"
        yield f"[bold]{plain(change['path'])}[/]  [dim]{plain(change['change'])}{size}[/]"
        if change.get("diff"):
            yield _coloured(str(change["diff"]))
    if data.get("left_out"):
        yield f"[dim]and {data['left_out']} other files[/]"


def is_test(part: SubScore) -> bool:
    """Whether it is one test's: the leaf of a ``PytestGrader``."""
    return not part.children and "outcome" in (part.info or {})


def test_counts(tests: Sequence[SubScore]) -> str:
    """``130 tests: passed 129, failed 1``."""
    counts = Counter(_outcome(test) for test in tests)
    listed = ", ".join(_styled(outcome, f"{outcome} {count}") for outcome, count in counts.most_common())
    return f"{len(tests)} test{'s' if len(tests) != 1 else ''}: {listed}"


def tests_table(parts: Iterable[SubScore]) -> RenderableType | None:
    """A line a test, those that did not pass first; None without one."""
    tests = sorted(_tests(parts), key=lambda test: test.value)
    if not tests:
        return None
    table = columns(test="left", outcome="left", took="right", message="left")
    for test in tests:
        info = test.info or {}
        message = info.get("crossing") or info.get("message") or ""
        outcome = _outcome(test)
        took = duration(float(info.get("seconds") or 0.0))
        table.add_row(plain(test.name), _styled(outcome, outcome), took, plain(_first(str(message))))
    return table


def trust_words(parts: Iterable[SubScore]) -> list[str]:
    """What a solution might have done without being stopped, by the graders' own cards."""
    found: dict[str, None] = {}
    for part in parts:
        card = (part.info or {}).get("trust")
        if isinstance(card, Mapping):
            found.update(dict.fromkeys(map(str, card.get("not_stopped") or ())))
        found.update(dict.fromkeys(trust_words(part.children or ())))
    return list(found)


def _tests(parts: Iterable[SubScore]) -> Iterator[SubScore]:
    for part in parts:
        if is_test(part):
            yield part
        yield from _tests(part.children or ())


def _outcome(test: SubScore) -> str:
    return str((test.info or {}).get("outcome"))


def _styled(outcome: str, words: str) -> str:
    return f"[{_OUTCOMES.get(outcome, 'red')}]{plain(words)}[/]"


def _coloured(diff: str) -> str:
    lines = diff.splitlines()
    shown = []
    for line in lines[:_DIFF_LINES]:
        colour = _COLOURS.get(line[:1])
        shown.append(f"[{colour}]{plain(line)}[/]" if colour and line[:3] not in ("+++", "---") else plain(line))
    if len(lines) > _DIFF_LINES:
        shown.append(f"[dim]… {len(lines)} lines[/]")
    return "\n".join(shown)


def _last(text: str) -> list[str]:
    """The last lines, each as long as a line may be."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    cut = [f"… {len(lines)} lines"] if len(lines) > _LINES else []
    return [line[:_WIDE] for line in cut + lines[-_LINES:]]


def _first(message: str) -> str:
    """What pytest says first of an error, else the first line."""
    lines = [line for line in message.splitlines() if line.strip()]
    told = next((line[1:].strip() for line in lines if line.startswith("E ")), lines[0].strip() if lines else "")
    return told if len(told) <= _WIDE else f"{told[:_WIDE]} …"
