"""``hudsim bench compare``: ratios, their intervals and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bench.compare import compare, only, ratio, unlike
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


def test_one_turn_has_no_interval_and_does_not_fail() -> None:
    found = ratio("trip", [[1.0, 1.0]], [[2.0, 2.0]], 0.5)
    assert (found.value, found.low, found.high) == (2.0, None, None)
    assert not found.fails(1.2)


def test_a_floor_that_became_slower_is_shown_and_does_not_fail() -> None:
    before, after = (document(series("tcp", turns(level), unit="us", judged=False)) for level in (100.0, 200.0))
    for found in compare(before, after):
        assert found.low is not None
        assert found.low > 1.2
        assert not found.fails(1.2)


def test_what_one_document_alone_has_is_named() -> None:
    one, other = (document(*(series(name, [[1.0]], unit="us") for name in names)) for names in ("ab", "bcd"))
    assert only(one, other) == ["a"]
    assert only(other, one) == ["c", "d"]


def test_another_machine_other_versions_and_a_quick_run_are_told() -> None:
    one = {"machine": "X", "python": "3.12.1", "versions": {"numpy": "2.1", "mujoco": "3"}}
    other = {"machine": "Y", "python": "3.12.1", "versions": {"numpy": "2.2"}, "quick": True}
    assert unlike(one, one) == []
    assert unlike(one, other) == [
        "the machine differs: X and Y",
        "numpy differs: 2.1 and 2.2",
        "B is of a quick run, whose numbers say little",
    ]


def test_what_it_prints_for_people(tmp_path: Path) -> None:
    about = {"hudsim": "1.0", "machine": "X, 4 cores", "load": 0.5, "versions": {"numpy": "2.1"}}
    floor = series("a floor", turns(1.0), unit="us", judged=False)
    for name, own, more in (("a", "gone", about), ("b", "new", about | {"machine": "Y"})):
        measured = document(floor, series("trip", [[1.0]], unit="us"), series(own, [[1.0]], unit="us"))
        (tmp_path / f"{name}.json").write_text(json.dumps(measured | more))
    done = hudsim("bench", "compare", "a.json", "b.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "A: a.json, hudsim 1.0, numpy 2.1, X, 4 cores, load 0.5, 1502 samples",
        "warning: the machine differs: X, 4 cores and Y",
        "one turn",
        "not judged",
        "only in A: gone",
        "only in B: new",
    ):
        assert words in done.stdout


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
    assert [one["fails"] for one in json.loads(done.stdout)["ratios"]] == [bool(code)] * 2


def test_a_file_that_is_no_document_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    done = hudsim("bench", "compare", "a.json", "missing.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a benchmark's JSON document" in done.stderr


def test_too_few_samples_have_no_p999() -> None:
    assert quantiles([1.0] * 100)["p99.9"] is None
    assert quantiles([float(i) for i in range(10_000)])["p99.9"] == pytest.approx(9989, abs=1)
    assert set(quantiles([]).values()) == {None}
