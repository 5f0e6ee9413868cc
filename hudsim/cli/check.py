"""``hudsim check``: the conformance kit against one world, in a user's words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, Cameras, Rate, Settings, World, read_settings
from hudsim.cli.output import emit_json, stdout
from hudsim.cli.words import plain

if TYPE_CHECKING:
    from hudsim.testing import Finding

__all__ = ["check"]

_RECOGNISE = "hudsim.bridges.testcard:recognise"
_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "error": "[red]✗[/]"}


def check(
    world: World,
    *,
    settings: Settings = None,
    cameras: Cameras = None,
    rate: Rate = None,
    watchdog: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Seconds without a finding before the world has hung.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Check that a world keeps its contract.

    What it shows, its cameras, resets, ends, and the time a step takes. The world runs in a process of its own.

    Exit code 1 if something is wrong.
    """
    from hudsim import registry
    from hudsim.errors import UsageError
    from hudsim.testing.apart import check_apart

    if registry.is_url(world):
        raise UsageError("a world is checked where it is made: name it, not the url of its server")
    spec = registry.world(world, read_settings(settings), cameras=cameras, control_rate=rate)
    findings: list[Finding] = []
    show = (lambda finding: None) if as_json else _printer()
    with contextlib.closing(check_apart(spec, recognise=_RECOGNISE, watchdog_s=watchdog)) as found:
        for finding in found:
            findings.append(finding)
            show(finding)
    wrong = sum(finding.severity == "error" for finding in findings)
    if as_json:
        emit_json({"world": world, "ok": not wrong, "findings": [_document(finding) for finding in findings]})
    else:
        said = f"{wrong} of {len(findings)} checks found something wrong" if wrong else "all is well"
        stdout().print(said, style="bold")
    raise typer.Exit(1 if wrong else 0)


def _document(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("what", "severity", "got", "expected")}


def _printer() -> Callable[[Finding], None]:
    console = stdout()
    return lambda finding: console.print(f"{_MARKS[finding.severity]} {plain(finding)}")
