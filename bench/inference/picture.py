"""``draw``: what each strategy makes of slower and slower inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudsim.bench.shared.document import heading
from hudsim.bench.shared.pictures import COLOURS, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(document: dict[str, Any]) -> Figure:
    """Executed rate, seam and success over the inference time."""
    figure, axes = panels(3, f"arm-lift at 50 Hz in realtime, chunks of 16 · {heading(document)}")
    titles = ("actions executed, Hz", "largest step between two chunks, rad", "success")
    for i, strategy in enumerate(dict.fromkeys(row["strategy"] for row in document["rows"])):
        rows = [row for row in document["rows"] if row["strategy"] == strategy]
        times = [row["infer_ms"] for row in rows]
        seams = [float("nan") if row["seam_max"] is None else row["seam_max"] for row in rows]
        successes = [row["successes"] / row["episodes"] for row in rows]
        for ax, values in zip(axes, ([row["executed_hz"] for row in rows], seams, successes), strict=True):
            ax.plot(times, values, "o-", markersize=9 - 2 * i, color=COLOURS[i], label=strategy)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_xscale("log")
        ax.set_xticks(sorted({row["infer_ms"] for row in document["rows"]}))
        ax.xaxis.set_major_formatter(lambda ms, _: f"{ms:g}")
        ax.minorticks_off()
        ax.set_xlabel("inference, ms", fontsize=8)
        ax.set_title(title, fontsize=9)
        ax.set_ylim(0, ax.get_ylim()[1] * 1.05)
    legend(figure, axes[0])
    return figure
