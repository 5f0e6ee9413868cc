"""How the benchmarks' pictures look."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "legend", "panels", "tail", "tails"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which the colour-blind can tell apart."""

_SHARES, _LABELS = (0.5, 0.1, 0.01, 0.001), ("p50", "p90", "p99", "p99.9")
_LOWEST = 0.0005  # share that a tail is drawn to
_MANY = 1e4  # a range that has no room for three labels a decade
_COLUMNS = 3
_MOST = 400  # points of a line
_LETTERS = 12  # of a title, an inch


def panels(count: int, title: str, *, width: float = 4.2, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels, three a row; ``width`` and ``height`` in inches, of each."""
    from matplotlib.figure import Figure

    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    figure.suptitle(textwrap.fill(title, int(width * columns * _LETTERS)), fontsize=9)
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
    """A distribution by its tail: what share of the samples is larger. :func:`tails` finishes its panel."""
    ordered = np.sort(samples)
    share = 1 - np.arange(len(ordered)) / len(ordered)
    kept = np.unique(np.searchsorted(-share, -np.geomspace(1, share[-1], _MOST)))
    kept = kept[kept < len(ordered)]
    ax.plot(ordered[kept], share[kept], linewidth=1.4, **style)


def tails(axes: Sequence[Axes], x_label: str) -> None:
    """Finish panels of tails: x logarithmic and the same for all, y no further than there are samples."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = np.inf, 0.0
    for ax in axes:
        points = np.concatenate([line.get_xydata() for line in ax.lines])
        lowest = max(_LOWEST, points[:, 1].min())
        shown = points[points[:, 1] >= lowest, 0]
        low, high = min(low, shown.min()), max(high, shown.max())
        ax.set_yscale("log")
        ax.set_ylim(lowest * 0.95, 1.05)
        ax.set_yticks([share for share in _SHARES if share >= lowest], _LABELS[: sum(s >= lowest for s in _SHARES)])
    subs = (1.0, 2.0, 5.0) if high / low < _MANY else (1.0,)
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlim(low / 1.1, high * 1.1)
        ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.minorticks_off()
        ax.set_xlabel(x_label, fontsize=8)
