"""``draw``: distributions of lateness, and lateness over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hudsim.bench.shared.document import heading
from hudsim.bench.shared.pictures import COLOURS, legend, panels, tail, tails

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_SHOWN_HZ = (50, 100, 250, 500, 1000)
_OVER_TIME_HZ = 100


def draw(document: dict[str, Any]) -> Figure:
    """A panel a rate, of the world's own account; the last shows arrivals one after another."""
    rates = list(dict.fromkeys(row["rate_hz"] for row in document["rows"]))
    loads = list(dict.fromkeys(row["load"] for row in document["rows"]))
    found = {measured["name"]: measured["turns"] for measured in document["series"]}
    shown = [rate for rate in rates if rate in _SHOWN_HZ] or rates[:1]
    figure, axes = panels(len(shown) + 1, f"lateness of ticks · {heading(document)}")
    for rate, ax in zip(shown, axes[:-1], strict=True):
        for load, colour in zip(loads, COLOURS, strict=False):
            late = np.concatenate(found[f"{rate} Hz · {load} · late"]) / 1e3
            tail(ax, np.maximum(late, 1e-4), color=colour, label=load)
        ax.set_title(f"{rate} Hz", fontsize=9)
    tails(axes[:-1], "step began after its deadline, ms")
    legend(figure, axes[0])
    rate = _OVER_TIME_HZ if _OVER_TIME_HZ in rates else rates[0]
    for load, colour in zip(loads, COLOURS, strict=False):
        arrival = np.array(found[f"{rate} Hz · {load} · arrival"][-1]) / 1e3
        times = np.arange(len(arrival)) / rate
        axes[-1].plot(times, arrival, ".", markersize=2.5, color=colour)
    axes[-1].set_yscale("symlog", linthresh=0.1)
    axes[-1].set_xlabel("s", fontsize=8)
    axes[-1].set_ylabel("observation came later than the promptest, ms", fontsize=7)
    axes[-1].set_title(f"{rate} Hz, as seen by the agent", fontsize=9)
    return figure
