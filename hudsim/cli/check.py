"""``hudsim check``: the conformance kit against one world, in a user's words."""

from __future__ import annotations

from typing import Any

import typer

from hudsim.cli.options import AsJson, Cameras, Rate, Settings, World, read_settings
from hudsim.cli.output import emit_json, stdout

__all__ = ["check"]

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "error": "[red]✗[/]"}


def check(
    world: World,
    *,
    settings: Settings = None,
    cameras: Cameras = None,
    rate: Rate = None,
    as_json: AsJson = False,
) -> None:
    """Check that a world keeps its contract.

    What it shows, its cameras, resets, ends, and the time a step takes. Exit code 1 if something is wrong.
    """
    from hudsim import registry
    from hudsim.bridges.testcard import recognise
    from hudsim.errors import UsageError
    from hudsim.testing.checks import check_bridge

    if registry.is_url(world):
        raise UsageError("a world is checked where it is made: name it, not the url of its server")
    spec = registry.world(world, read_settings(settings), cameras=cameras, control_rate=rate)
    findings = check_bridge(spec.factory(), task_args=spec.task_args, recognise=recognise)
    wrong = sum(finding.severity == "error" for finding in findings)
    if as_json:
        emit_json({"world": world, "ok": not wrong, "findings": [_document(finding) for finding in findings]})
    else:
        _print(findings, wrong)
    raise typer.Exit(1 if wrong else 0)


def _document(finding: Any) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("what", "severity", "got", "expected")}


def _print(findings: list[Any], wrong: int) -> None:
    from rich.markup import escape

    console = stdout()
    for finding in findings:
        console.print(f"{_MARKS[finding.severity]} {escape(str(finding))}")
    console.print(f"{wrong} of {len(findings)} checks found something wrong" if wrong else "all is well", style="bold")
