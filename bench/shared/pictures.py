"""How the benchmarks' pictures look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "legend", "panels", "tail"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which the colour-blind can tell apart."""

_SHARES = (0.5, 0.1, 0.01, 0.001)
_COLUMNS = 3
_MOST = 400  # points of a line


def panels(count: int, title: str, *, width: float = 4.2, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels, three a row; ``width`` and ``height`` in inches, of each."""
    from matplotlib.figure import Figure

    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    figure.suptitle(title, fontsize=9)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for ax in axes:
        ax.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend(figure: Figure, ax: Axes) -> None:
    """The lines of ``ax`` by name, below all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)


def tail(ax: Axes, samples: NDArray[np.float64], **style: Any) -> None:
    """A distribution by its tail: what share of the samples is larger, with p50, p90, p99 and p99.9 marked."""
    ordered = np.sort(samples)
    share = 1 - np.arange(len(ordered)) / len(ordered)
    kept = np.unique(np.searchsorted(-share, -np.geomspace(1, share[-1], _MOST)))
    kept = kept[kept < len(ordered)]
    ax.plot(ordered[kept], share[kept], linewidth=1.4, **style)
    ax.set_yscale("log")
    ax.set_ylim(0.0005, 1.05)
    ax.set_yticks(_SHARES, ["p50", "p90", "p99", "p99.9"])
    ax.minorticks_off()
