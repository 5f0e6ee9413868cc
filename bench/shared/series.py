"""``series``: samples as they were measured, turn by turn, so that two documents can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

__all__ = ["quantiles", "series"]

_LABELS = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 1.0: "max"}
_FEWEST = {0.999: 2000}  # samples; below that it is hardly another thing than the maximum


def series(
    name: str,
    turns: Iterable[Sequence[float]],
    *,
    unit: str,
    better: Literal["lower", "higher"] = "lower",
    judged: bool = True,
) -> dict[str, Any]:
    """As JSON. A turn is what was measured without a break: samples of one turn are alike, turns differ.

    ``hudsim bench compare`` matches series by their names, and fails for none that is not ``judged``: a floor's or a
    peer's.
    """
    kept = [[round(float(sample), 2) for sample in turn] for turn in turns if len(turn)]
    return {"name": name, "unit": unit, "better": better, "judged": judged, "turns": kept}


def quantiles(samples: Sequence[float]) -> dict[str, float | None]:
    """``p50, p90, p99, p99.9, max``, in the samples' unit; None for what they are too few for."""
    if not len(samples):
        return dict.fromkeys(_LABELS.values(), None)
    values = np.quantile(samples, list(_LABELS))
    return {
        label: round(float(value), 1) if len(samples) >= _FEWEST.get(q, 1) else None
        for (q, label), value in zip(_LABELS.items(), values, strict=True)
    }
