"""Two documents of one benchmark, series by series: the ratio of medians and of 99th percentiles, with intervals.

A ratio above 1 means that B is worse. Its interval (95%) is that of 2,000 draws: of both documents, whole turns are
drawn with replacement, as many as there are. Samples of one turn are not independent of each other (the machine was
busy or it was not), so that drawing single samples would promise more than was measured.

The exit code is 1 if some series is worse by more than `--fail-over` beyond doubt: if the lower end of its interval is
above that. A ratio that is only maybe that bad does not fail; measure longer, and the interval shrinks.

    hudsim bench compare A.json B.json --fail-over 1.2
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hudsim.errors import UsageError

__all__ = ["Ratio", "compare", "main", "ratio"]

_DRAWS = 2000
_INTERVAL = (0.025, 0.975)
_FEWEST_P99 = 500  # samples
_POINTS = 512  # a turn is drawn with as many points of its distribution; more say no more


@dataclass(frozen=True)
class Ratio:
    """``value`` above 1: B is worse. ``low`` and ``high`` hold it in 95 of 100; None: one turn alone tells none."""

    name: str
    quantile: float
    value: float
    low: float | None
    high: float | None

    def fails(self, limit: float) -> bool:
        """Whether B is worse by more than that beyond doubt; without an interval, by what was measured."""
        return (self.value if self.low is None else self.low) > limit

    def to_json(self) -> dict[str, Any]:
        rounded = {key: None if end is None else round(end, 4) for key, end in (("low", self.low), ("high", self.high))}
        return {"name": self.name, "quantile": self.quantile, "ratio": round(self.value, 4), **rounded}


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[Ratio]:
    """The medians of each series that both have, and the 99th percentiles where there are samples enough.

    Raises :class:`~hudsim.errors.UsageError` for documents that have no series in common.
    """
    olds, news = ({one["name"]: one for one in document.get("series", [])} for document in (before, after))
    names = [name for name in olds if name in news]
    if before.get("bench") != after.get("bench") or not names:
        said = " and ".join(f"{d.get('bench')!r} with {len(d.get('series', []))} series" for d in (before, after))
        raise UsageError(f"got {said}, expected two documents of one benchmark with series in common")
    ratios = []
    for name in names:
        old, new = olds[name], news[name]
        enough = min(sum(map(len, one["turns"])) for one in (old, new)) >= _FEWEST_P99
        ratios += [
            ratio(name, old["turns"], new["turns"], quantile, higher=old["better"] == "higher")
            for quantile in ((0.5, 0.99) if enough else (0.5,))
        ]
    return ratios


def ratio(
    name: str, before: list[list[float]], after: list[list[float]], quantile: float, *, higher: bool = False
) -> Ratio:
    """Of one quantile; ``higher``: more is better."""
    exponent = -1.0 if higher else 1.0
    value = (_of(after, quantile) / _of(before, quantile)) ** exponent
    if min(len(before), len(after)) < 2:
        return Ratio(name, quantile, value, None, None)
    rng = np.random.default_rng(0)
    drawn = (_drawn(after, quantile, rng) / _drawn(before, quantile, rng)) ** exponent
    low, high = np.quantile(drawn, _INTERVAL)
    return Ratio(name, quantile, value, float(low), float(high))


def _of(turns: list[list[float]], quantile: float) -> float:
    return max(float(np.quantile(np.concatenate([np.asarray(turn) for turn in turns]), quantile)), _TINY)


_TINY = 1e-9  # no ratio is to a zero


def _drawn(turns: list[list[float]], quantile: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The quantile of each draw, by counting: a turn that was drawn twice has its samples weigh twice."""
    samples = np.concatenate([_thinned(turn) for turn in turns])
    turn_of = np.repeat(np.arange(len(turns)), [min(len(turn), _POINTS) for turn in turns])
    order = np.argsort(samples)
    samples, turn_of = samples[order], turn_of[order]
    drawn = np.empty(_DRAWS)
    for i in range(_DRAWS):
        times = np.bincount(rng.integers(0, len(turns), len(turns)), minlength=len(turns))
        below = np.cumsum(times[turn_of])
        drawn[i] = samples[np.searchsorted(below, quantile * below[-1])]
    return np.maximum(drawn, _TINY)


def _thinned(turn: list[float]) -> NDArray[np.float64]:
    values = np.asarray(turn, dtype=np.float64)
    return values if len(values) <= _POINTS else np.quantile(values, np.linspace(0, 1, _POINTS))


def _load(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: expected a benchmark's JSON document ({error})") from None
    if not isinstance(document, dict):
        raise UsageError(f"{file}: got a {type(document).__name__}, expected a benchmark's JSON document")
    return document


def _show(ratios: list[Ratio], limit: float) -> None:
    table = Table(title="B against A: above 1 is worse")
    for heading in ("", "", "ratio", "95%", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for one in ratios:
        interval = "" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        verdict = "worse" if one.fails(limit) else ""
        table.add_row(one.name, f"p{one.quantile * 100:g}", f"{one.value:.3f}", interval, verdict)
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if B is worse by more than it may."""
    parser = argparse.ArgumentParser(
        prog="hudsim bench compare", description="Two documents of one benchmark: what became slower, and how surely."
    )
    parser.add_argument("before", type=Path, metavar="A.json")
    parser.add_argument("after", type=Path, metavar="B.json")
    parser.add_argument("--fail-over", type=float, default=1.2, metavar="RATIO", help="(default: 1.2)")
    parser.add_argument("--json", action="store_true", help="print one JSON document, no table")
    asked = parser.parse_args(arguments)
    ratios = compare(_load(asked.before), _load(asked.after))
    if asked.json:
        print(json.dumps([{**one.to_json(), "fails": one.fails(asked.fail_over)} for one in ratios], indent=1))
    else:
        _show(ratios, asked.fail_over)
    return int(any(one.fails(asked.fail_over) for one in ratios))


if __name__ == "__main__":
    sys.exit(main())
