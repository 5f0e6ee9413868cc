"""A cadence's summary for people: how the rate was kept, and where the time of a tick went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.cli.output import columns

__all__ = ["rate_lines", "stages_table"]

_STAGES = {
    "step": "the simulator advances",
    "render": "it makes the observation, cameras included",
    "encode": "check and serialise",
    "compress": "cameras encoded, beside the simulator",
    "wire": "ready to send → received",
    "decompress": "cameras decoded, beside the agent",
    "adapt": "the policy's adapter",
    "infer": "the policy's model",
    "apply": "action arrived → its step starts",
}


def rate_lines(cadence: Mapping[str, Any], *, realtime: bool) -> list[tuple[str, str]]:
    """Names and words, of what :meth:`~hudsim.robot.cadence.Cadence.summary` gave; none if there was no tick."""
    ticks, achieved, asked = cadence["ticks"], cadence["rate_achieved_hz"], cadence["rate_asked_hz"]
    if not ticks:
        return []
    lines = [("ticks", str(ticks))]
    if achieved is not None:
        how = "as fast as it goes" if asked is None else f"{asked:g} asked"
        lines.append(("rate", f"{achieved:.2f} Hz, {how}"))
    if asked is not None:
        missed = cadence["missed"]
        lines.append(("missed", f"{missed} deadlines ({missed / (ticks + missed):.2%})"))
    if (late := cadence["late_us"]) is not None:
        lines.append(("lateness", "  ".join(f"{q} {late[q] / 1e3:.3f}" for q in ("p50", "p99", "max")) + " ms"))
    if (size := cadence["frame_bytes"]) is not None:
        lines.append(
            (
                "frames",
                f"{size['p50'] / 1e3:.1f} kB an observation through the socket (p50), {size['max'] / 1e3:.1f} at most",
            )
        )
    if realtime:
        lines.append(("starved", f"{cadence['starved']} ticks without an action"))
        lines.append(("unused", f"{cadence['stale']} stale chunks, {cadence['skipped']} skipped observations"))
        if (age := cadence["action_age_ticks"]) is not None:
            lines.append(("age", f"actions of observations {age['p50']} ticks old (p50), {age['max']} at most"))
    return lines


def stages_table(cadence: Mapping[str, Any]) -> Any:
    """The latency budget; None if nothing was measured."""
    stages = {name: us for name, us in cadence["stages_us"].items() if us is not None}
    if not stages:
        return None
    table = columns(ms="left", p50="right", p99="right", max="right", _="left")
    for name, us in stages.items():
        table.add_row(name, *(f"{us[q] / 1e3:.3f}" for q in ("p50", "p99", "max")), f"[dim]{_STAGES.get(name, '')}[/]")
    return table
