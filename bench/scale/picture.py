"""``draw``: the curves: ticks missed and steps a second, over worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudsim.bench.shared.document import heading
from hudsim.bench.shared.pictures import COLOURS, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(document: dict[str, Any]) -> Figure:
    """Left the rungs, right the paces."""
    figure, (left, right) = panels(2, f"many worlds · {heading(document)}", width=5.0)
    kinds = dict.fromkeys((rung["world"], rung["processes"]) for rung in document["rungs"])
    for kind, colour in zip(kinds, COLOURS, strict=False):
        found = [rung for rung in document["rungs"] if (rung["world"], rung["processes"]) == kind]
        label = f"{kind[0]}, {kind[1]} process" + "es" * (kind[1] > 1)
        shares = [max(rung["worst_share"], 1e-4) for rung in found]
        left.plot([rung["worlds"] for rung in found], shares, "o-", markersize=3, color=colour, label=label)
    left.axhline(document["limit"], color="black", linewidth=0.8, linestyle=":")
    left.set_yscale("log")
    left.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["none", "0.1%", "1%", "10%", "all"])
    left.set_title(f"ticks missed at {document['rate_hz']:g} Hz, the worst world", fontsize=9)
    kinds = dict.fromkeys((pace["world"], pace["processes"] > 1) for pace in document["paces"])
    for (world, apart), colour in zip(kinds, COLOURS, strict=False):
        found = [p for p in document["paces"] if p["world"] == world and (p["processes"] > 1) == apart]
        label = f"{world}, one a process" if apart else f"{world}, all in one process"
        paces = [pace["steps_per_s"] for pace in found]
        right.plot(
            [pace["worlds"] for pace in found], paces, "s--" if apart else "o-", markersize=3, color=colour, label=label
        )
    right.set_ylim(bottom=0)
    right.set_title("steps a second in lockstep, all worlds together", fontsize=9)
    _finish(left)
    _finish(right)
    return figure


def _finish(ax: Axes) -> None:
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda worlds, _: f"{worlds:g}")
    ax.set_xlabel("worlds", fontsize=8)
    ax.legend(fontsize=7)
