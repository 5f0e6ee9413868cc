"""Two documents of one benchmark, series by series: the ratio of medians and of 99th percentiles, with intervals.

A ratio above 1 means that B is worse. Its interval (95%) is that of 2,000 draws: of both documents, whole turns are
drawn with replacement, as many as there are. Samples of one turn are not independent of each other (the machine was
busy or it was not), so that drawing single samples would promise more than was measured.

The exit code is 1 if some series of hudsim's own is worse by more than `--fail-over` beyond doubt: if the lower end of
its interval is above that. A ratio that is only maybe that bad does not fail; measure longer, and the interval shrinks.
One turn alone has no interval, and never fails. Nor do floors and peers (`"judged": false`): what becomes of them is
the machine's doing, or somebody else's.

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

from hudsim.bench.latency.system import PEERS
from hudsim.bench.shared.document import packages, screen
from hudsim.bench.shared.kept import Kept, KeptSeries
from hudsim.bench.shared.options import factor
from hudsim.bench.shared.program import program
from hudsim.bench.shared.tables import print_table, table
from hudsim.errors import UsageError

__all__ = ["Ratio", "compare", "main", "only", "ratio", "unlike"]

_DRAWS = 2000
_INTERVAL = (0.025, 0.975)
_FEWEST_P99 = 500  # samples
_POINTS = 512  # a turn is drawn with as many points of its distribution; more say no more


@dataclass(frozen=True)
class Ratio:
    """``value`` above 1: B is worse. ``low`` and ``high`` hold it in 95 of 100; None: one turn alone tells none.

    ``judged``: False for a floor or a peer, which never fails.
    """

    name: str
    quantile: float
    value: float
    low: float | None
    high: float | None
    judged: bool = True

    def fails(self, limit: float) -> bool:
        """Whether B is worse by more than that beyond doubt; without an interval there is doubt."""
        return self.judged and self.low is not None and self.low > limit

    def to_json(self) -> dict[str, Any]:
        rounded = {key: None if end is None else round(end, 4) for key, end in (("low", self.low), ("high", self.high))}
        ratio = round(self.value, 4)
        return {"name": self.name, "quantile": self.quantile, "judged": self.judged, "ratio": ratio, **rounded}


def compare(before: Kept, after: Kept) -> list[Ratio]:
    """The medians of each series that both have, and the 99th percentiles where there are samples enough.

    Raises :class:`~hudsim.errors.UsageError` for documents that have no series in common, or one whose unit or better
    direction is not the same in both.
    """
    olds, news = ({one.name: one for one in document.series} for document in (before, after))
    names = [name for name in olds if name in news]
    if before.bench != after.bench or not names:
        said = " and ".join(f"{document.bench!r} with {len(document.series)} series" for document in (before, after))
        raise UsageError(f"got {said}, expected two documents of one benchmark with series in common")
    ratios = []
    for name in names:
        old, new = olds[name], news[name]
        _check_alike(old, new)
        enough = min(old.samples, new.samples) >= _FEWEST_P99
        judged, higher = old.judged and new.judged, old.better == "higher"
        ratios += [
            ratio(name, old.turns, new.turns, quantile, higher=higher, judged=judged)
            for quantile in ((0.5, 0.99) if enough else (0.5,))
        ]
    return ratios


def _check_alike(old: KeptSeries, new: KeptSeries) -> None:
    for what, one, other in (("better", old.better, new.better), ("unit", old.unit, new.unit)):
        if one != other:
            raise UsageError(f"{old.name}: got {what} {one!r} in A and {other!r} in B, expected the same in both")


def ratio(
    name: str,
    before: list[list[float]],
    after: list[list[float]],
    quantile: float,
    *,
    higher: bool = False,
    judged: bool = True,
) -> Ratio:
    """Of one quantile; ``higher``: more is better."""
    exponent = -1.0 if higher else 1.0
    value = (_of(after, quantile) / _of(before, quantile)) ** exponent
    if min(len(before), len(after)) < 2:
        return Ratio(name, quantile, value, None, None, judged)
    rng = np.random.default_rng(0)
    drawn = (_drawn(after, quantile, rng) / _drawn(before, quantile, rng)) ** exponent
    low, high = np.quantile(drawn, _INTERVAL)
    return Ratio(name, quantile, value, float(low), float(high), judged)


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


def only(one: Kept, other: Kept) -> list[str]:
    """The names of the series that ``other`` lacks."""
    there = {series.name for series in other.series}
    return [series.name for series in one.series if series.name not in there]


def unlike(before: Kept, after: Kept) -> list[str]:
    """In words, what makes the two hard to hold against each other: machines, versions, the peers', a quick run."""
    found = []
    for what, old, new in (("the machine", before.machine, after.machine), ("Python", before.python, after.python)):
        if None not in (old, new) and old != new:
            found.append(f"{what} differs: {old} and {new}")
    found += _differing(before.versions, after.versions)
    for peer in PEERS:
        found += [f"{peer}: {words}" for words in _differing(before.versions_of(peer), after.versions_of(peer))]
    quick = [name for name, document in (("A", before), ("B", after)) if document.quick]
    return found + [f"{name} is of a quick run, whose numbers say little" for name in quick]


def _differing(old: dict[str, str], new: dict[str, str]) -> list[str]:
    return [f"{name} differs: {old[name]} and {new[name]}" for name in old if new.get(name, old[name]) != old[name]]


def _told(file: Path, document: Kept) -> dict[str, Any]:
    """What it is, for people to know it by; ``samples``: of all series."""
    about = {"hudsim", "machine", "load", "python", "versions"}
    known = document.model_dump(include=about, exclude_unset=True, exclude_none=True)
    samples = sum(series.samples for series in document.series)
    return {"file": str(file), **known, "samples": samples, "quick": document.quick}


def _line(told: dict[str, Any]) -> str:
    words = [told["file"], f"hudsim {told.get('hudsim', '?')}", packages(told.get("versions", {}))]
    words += [told.get("machine", "machine unknown"), f"load {told.get('load', '?')}", f"{told['samples']} samples"]
    return ", ".join(word for word in words if word)


def _show(ratios: list[Ratio], limit: float) -> None:
    made = table("B against A: above 1 is worse; dim: floors and peers, not judged", words=("series", ""))
    for heading in ("ratio", "95%"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("", no_wrap=True)
    for one in ratios:
        interval = "one turn" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        verdict = "worse" if one.fails(limit) else "" if one.judged else "not judged"
        style = None if one.judged else "dim"
        made.add_row(one.name, f"p{one.quantile * 100:g}", f"{one.value:.3f}", interval, verdict, style=style)
    print_table(screen(), made)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if B is worse by more than it may."""
    parser = argparse.ArgumentParser(
        prog="hudsim bench compare", description="Two documents of one benchmark: what became slower, and how surely."
    )
    parser.add_argument("before", type=Path, metavar="A.json")
    parser.add_argument("after", type=Path, metavar="B.json")
    parser.add_argument("--fail-over", type=factor, default=1.2, metavar="RATIO", help="(default: 1.2)")
    parser.add_argument("--json", action="store_true", help="print one JSON document, no table")
    asked = parser.parse_args(arguments)
    before, after = Kept.load_from(asked.before), Kept.load_from(asked.after)
    ratios, warnings = compare(before, after), unlike(before, after)
    told = {"A": _told(asked.before, before), "B": _told(asked.after, after)}
    alone = {"A": only(before, after), "B": only(after, before)}
    if asked.json:
        found = [{**one.to_json(), "fails": one.fails(asked.fail_over)} for one in ratios]
        print(json.dumps({**told, "warnings": warnings, "only_in": alone, "ratios": found}, indent=1))
    else:
        for name, document in told.items():
            print(f"{name}: {_line(document)}")
        for warning in warnings:
            print(f"warning: {warning}")
        _show(ratios, asked.fail_over)
        for name, names in alone.items():
            if names:
                print(f"only in {name}: {'; '.join(names)}")
    return int(any(one.fails(asked.fail_over) for one in ratios))


if __name__ == "__main__":
    sys.exit(program(main))
