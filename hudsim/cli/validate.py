"""``hudsim validate``: whether an environment's tasks pay for what they should, and for nothing else."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, read_settings
from hudsim.cli.output import emit_json, stdout
from hudsim.errors import UnknownName

if TYPE_CHECKING:
    from hudsim.registry import Source
    from hudsim.testing import Attack
    from hudsim.testing.validation import Options, Section

__all__ = ["validate"]

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "error": "[red]✗[/]"}
_ATTACKS = ("all", "quick", "none")
_Words = list[str] | None


def validate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV", help="An environment from `hudsim list`, a folder, FILE.py, FILE.json or FILE.jsonl."
        ),
    ],
    *,
    tasks: Annotated[
        _Words, typer.Option("--task", metavar="SLUG,…", help="These tasks alone.", show_default="all")
    ] = None,
    times: Annotated[int, typer.Option(metavar="N", min=1, help="How often each reference is tried.")] = 10,
    attacks: Annotated[
        str,
        typer.Option(
            metavar="|".join(_ATTACKS),
            help="Cheats to try on a task of each template; quick: without those that take as long as a grade may.",
        ),
    ] = "all",
    max_concurrent: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at once.")] = 4,
    grade_timeout: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=1e6, help="Seconds after which a grader has hung.")
    ] = 300.0,
    settings: Annotated[
        _Words,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the environment; VALUE is JSON or a word."),
    ] = None,
    env: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file that declares the environments of FILE.jsonl's tasks.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that an environment's tasks can be trusted.

    Untouched they are worth 0, their references are worth 1.0 every time, every hidden test can be run, and the cheats
    that hudsim knows are worth 0 while an honest solution amid junk is worth 1.0.

    Exit code 1 if something is wrong.
    """
    from hudsim import loop, registry

    if attacks not in _ATTACKS:
        raise UnknownName("set of attacks", attacks, _ATTACKS)
    found = registry.taskset(source, env=env)
    sections = loop.run(_validated(found, tasks, read_settings(settings), _options(
        times, attacks, max_concurrent, grade_timeout), quiet=as_json))  # fmt: skip
    well = all(section.well for section in sections)
    if as_json:
        emit_json({"environment": source, "ok": well, "sections": [_document(section) for section in sections]})
    else:
        wrong = sum(finding.severity == "error" for section in sections for finding in section.findings)
        stdout().print("all is well" if well else f"{wrong} found wrong", style="bold")
    raise typer.Exit(0 if well else 1)


def _options(times: int, attacks: str, max_concurrent: int, grade_timeout_s: float) -> Options:
    from hudsim.cli.watch import Watch
    from hudsim.testing.validation import Options

    return Options(
        times=times,
        attacks=_attacks(attacks),
        max_concurrent=max_concurrent,
        grade_timeout_s=grade_timeout_s,
        watch=Watch,
    )


def _attacks(words: str) -> list[Attack]:
    from hudsim.testing import ATTACKS

    return [] if words == "none" else [attack for attack in ATTACKS if words == "all" or not attack.slow]


async def _validated(
    found: Source, slugs: _Words, settings: dict[str, Any], options: Options, *, quiet: bool
) -> list[Section]:
    from hudsim import registry
    from hudsim.eval import LocalRuntime
    from hudsim.testing.validation import validate as sections_of

    wanted = [slug.strip() for words in slugs or () for slug in words.split(",") if slug.strip()]
    taskset = found.taskset.filter(wanted) if wanted else found.taskset
    sections = []
    async with LocalRuntime(found.file, settings=settings, reveal=True) as provider:
        await provider.check(taskset, registry.agent("oracle"))
        walk = sections_of(taskset, found.file, provider, registry.agent("oracle"), options)
        async with aclosing(walk) as walked:
            async for section in walked:
                sections.append(section)
                if not quiet:
                    _print(section)
    return sections


def _document(section: Section) -> dict[str, Any]:
    fields = ("what", "severity", "got", "expected")
    findings = [{name: getattr(finding, name) for name in fields} for finding in section.findings]
    return {"what": section.what, "ok": section.well, "findings": findings}


def _print(section: Section) -> None:
    """A line, and one for each finding that is not well."""
    from rich.markup import escape

    console = stdout()
    severities = [finding.severity for finding in section.findings]
    mark = _MARKS["error" if "error" in severities else "warning" if "warning" in severities else "ok"]
    console.print(f"{mark} {escape(section.what)}: {_count(section)}")
    for finding in section.findings:
        if not finding.ok:
            console.print(f"  {_MARKS[finding.severity]} {escape(str(finding))}", soft_wrap=True)


def _count(section: Section) -> str:
    total, well = len(section.findings), sum(finding.ok for finding in section.findings)
    if section.unit == "test that cannot":
        return f"{total or 'no'} {section.unit}"
    units = section.unit if total == 1 else f"{section.unit}s"
    return f"no {units} to try" if not total else f"{well} of {total} {units}"
