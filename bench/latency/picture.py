"""``draw``: the distributions, a panel a payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hudsim.bench.shared.document import heading
from hudsim.bench.shared.pictures import COLOURS, legend, panels, tail, tails

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(document: dict[str, Any]) -> Figure:
    """Round trips in ms, logarithmic, against the share of trips that take longer."""
    payloads = list(dict.fromkeys(row["payload"] for row in document["rows"]))
    systems = list(dict.fromkeys(row["system"] for row in document["rows"]))
    figure, axes = panels(len(payloads), f"action → next observation · {heading(document)}")
    for ax, payload in zip(axes, payloads, strict=True):
        for row, measured in zip(document["rows"], document["series"], strict=True):
            if row["payload"] == payload:
                colour = COLOURS[systems.index(row["system"])]
                tail(ax, np.concatenate(measured["turns"]) / 1e3, color=colour, label=row["system"])
        ax.set_title(payload, fontsize=9)
    tails(axes, "ms")
    legend(figure, axes[0])
    return figure
