"""``hudsim bench compare``: ratios, their intervals and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bench.compare import compare, ratio
from hudsim.bench.shared.series import quantiles, series
from hudsim.errors import UsageError
from tests.cli.command import hudsim

Turns = list[list[float]]


def turns(scale: float, *, seed: int = 0, count: int = 60, unsteady: float = 0.02) -> Turns:
    """Turns of 25 samples around ``scale``; what a turn has in common varies by ``unsteady``."""
    rng = np.random.default_rng(seed)
    levels = scale * np.exp(rng.normal(0, unsteady, count))
    return [[float(sample) for sample in rng.gamma(50, level / 50, 25)] for level in levels]


def document(*measured: dict[str, Any], bench: str = "latency") -> dict[str, Any]:
    return {"bench": bench, "series": list(measured)}


def test_the_ratio_of_medians_lies_in_its_interval() -> None:
    found = ratio("trip", turns(100.0), turns(150.0, seed=1), 0.5)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.5 < found.high
    assert found.low < found.value < found.high
    assert found.high - found.low < 0.1


def test_more_is_better_turns_the_ratio_round() -> None:
    slower = ratio("steps/s", turns(100.0), turns(50.0, seed=1), 0.5, higher=True)
    assert slower.value == pytest.approx(2.0, rel=0.05)
    assert slower.fails(1.2)
    assert not ratio("steps/s", turns(50.0), turns(100.0, seed=1), 0.5, higher=True).fails(1.2)


def test_turns_that_differ_make_a_wide_interval_however_many_samples_they_have() -> None:
    """Drawn one by one, the 1,500 samples would promise ±2%."""
    steady, unsteady = (
        ratio("trip", turns(100.0, unsteady=u), turns(100.0, seed=1, unsteady=u), 0.5) for u in (0.01, 0.5)
    )
    assert steady.high is not None
    assert steady.low is not None
    assert unsteady.high is not None
    assert unsteady.low is not None
    assert unsteady.high - unsteady.low > 5 * (steady.high - steady.low)


def test_only_what_is_worse_beyond_doubt_fails() -> None:
    sure = ratio("trip", turns(100.0), turns(130.0, seed=1), 0.5)
    assert sure.fails(1.2)
    assert not sure.fails(1.4)
    unsure = ratio("trip", turns(100.0, count=4, unsteady=0.4), turns(130.0, seed=5, count=4, unsteady=0.4), 0.5)
    assert unsure.low is not None
    assert unsure.low < 1.2
    assert not unsure.fails(1.2)


def test_one_turn_has_no_interval_and_fails_by_what_was_measured() -> None:
    found = ratio("trip", [[1.0, 1.0]], [[2.0, 2.0]], 0.5)
    assert (found.value, found.low, found.high) == (2.0, None, None)
    assert found.fails(1.2)


def test_the_99th_percentile_is_compared_where_there_are_samples_enough() -> None:
    many, few = (series("trip", turns(100.0, count=count), unit="us") for count in (60, 4))
    assert [one.quantile for one in compare(document(many), document(many))] == [0.5, 0.99]
    assert [one.quantile for one in compare(document(many), document(few))] == [0.5]


def test_a_tail_that_grew_shows_in_the_99th_percentile_alone() -> None:
    plain = turns(100.0)
    tailed = [[*turn[:-1], 1000.0] for turn in plain]
    median, tail = compare(document(series("trip", plain, unit="us")), document(series("trip", tailed, unit="us")))
    assert not median.fails(1.2)
    assert tail.fails(2.0)


def test_documents_without_series_in_common_are_refused() -> None:
    one, other = (document(series(name, [[1.0]], unit="us")) for name in ("a", "b"))
    for before, after in ((one, other), (one, {**one, "bench": "jitter"}), ({}, {})):
        with pytest.raises(UsageError, match="expected two documents of one benchmark"):
            compare(before, after)


@pytest.mark.parametrize(("after", "code"), [(100.0, 0), (200.0, 1)])
def test_the_command_exits_with_1_if_something_became_worse(tmp_path: Path, after: float, code: int) -> None:
    for name, level in (("a", 100.0), ("b", after)):
        words = json.dumps(document(series("trip", turns(level), unit="us")))
        (tmp_path / f"{name}.json").write_text(words)
    done = hudsim("bench", "compare", "a.json", "b.json", "--json", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert [one["fails"] for one in json.loads(done.stdout)] == [bool(code)] * 2


def test_a_file_that_is_no_document_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    done = hudsim("bench", "compare", "a.json", "missing.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a benchmark's JSON document" in done.stderr


def test_too_few_samples_have_no_p999() -> None:
    assert quantiles([1.0] * 100)["p99.9"] is None
    assert quantiles([float(i) for i in range(10_000)])["p99.9"] == pytest.approx(9989, abs=1)
    assert set(quantiles([]).values()) == {None}
