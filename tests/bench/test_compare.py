"""``hudsim bench compare``: ratios, their intervals and what fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bench.compare import compare, only, ratio, unlike
from hudsim.bench.shared.kept import Kept
from hudsim.bench.shared.series import quantiles, series
from hudsim.errors import UsageError
from tests.cli.command import HUDSIM, hudsim, inside

Turns = list[list[float]]


def turns(scale: float, *, seed: int = 0, count: int = 60, unsteady: float = 0.02) -> Turns:
    """Turns of 25 samples around ``scale``; what a turn has in common varies by ``unsteady``."""
    rng = np.random.default_rng(seed)
    levels = scale * np.exp(rng.normal(0, unsteady, count))
    return [[float(sample) for sample in rng.gamma(50, level / 50, 25)] for level in levels]


def document(*measured: dict[str, Any], bench: str = "latency") -> dict[str, Any]:
    return {"bench": bench, "series": list(measured)}


def kept(*measured: dict[str, Any], **more: Any) -> Kept:
    return Kept.model_validate(document(*measured) | more)


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
    before, after = (kept(series("tcp", turns(level), unit="us", judged=False)) for level in (100.0, 200.0))
    for found in compare(before, after):
        assert found.low is not None
        assert found.low > 1.2
        assert not found.fails(1.2)


def test_what_one_document_alone_has_is_named() -> None:
    one, other = (kept(*(series(name, [[1.0]], unit="us") for name in names)) for names in ("ab", "bcd"))
    assert only(one, other) == ["a"]
    assert only(other, one) == ["c", "d"]


def test_another_machine_other_versions_and_a_quick_run_are_told() -> None:
    one = kept(machine="X", python="3.12.1", versions={"numpy": "2.1", "mujoco": "3"})
    other = kept(machine="Y", python="3.12.1", versions={"numpy": "2.2"}, quick=True)
    assert unlike(one, one) == []
    assert unlike(one, other) == [
        "the machine differs: X and Y",
        "numpy differs: 2.1 and 2.2",
        "B is of a quick run, whose numbers say little",
    ]


def test_other_versions_of_a_peer_are_told_and_those_of_hudsim_itself_are_not() -> None:
    def rows(peer: dict[str, str], own: str) -> list[dict[str, Any]]:
        return [
            {"system": "hudsim, shm", "payload": "state", "versions": {"hudsim": own}},
            {"system": "hud", "payload": "state", "versions": peer},
            {"system": "hud", "payload": "2x224", "versions": peer},
        ]

    one = kept(rows=rows({"python": "3.12.1", "hud": "0.6.20", "numpy": "2.1"}, "1.0"))
    other = kept(rows=rows({"python": "3.12.1", "hud": "0.6.21"}, "1.1"))
    assert unlike(one, other) == ["hud: hud differs: 0.6.20 and 0.6.21"]
    assert unlike(one, kept()) == []


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
    assert [one.quantile for one in compare(kept(many), kept(many))] == [0.5, 0.99]
    assert [one.quantile for one in compare(kept(many), kept(few))] == [0.5]


def test_a_tail_that_grew_shows_in_the_99th_percentile_alone() -> None:
    plain = turns(100.0)
    tailed = [[*turn[:-1], 1000.0] for turn in plain]
    median, tail = compare(kept(series("trip", plain, unit="us")), kept(series("trip", tailed, unit="us")))
    assert not median.fails(1.2)
    assert tail.fails(2.0)


def test_documents_without_series_in_common_are_refused() -> None:
    one, other = (kept(series(name, [[1.0]], unit="us")) for name in ("a", "b"))
    for before, after in ((one, other), (one, one.model_copy(update={"bench": "jitter"})), (kept(), kept())):
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


@pytest.mark.parametrize("other", [{"better": "higher"}, {"unit": "ms"}])
def test_a_series_that_says_another_thing_in_each_document_is_refused(other: dict[str, str]) -> None:
    trip = series("trip", [[1.0]], unit="us")
    with pytest.raises(UsageError, match=r"trip: got \w+ '\w+' in A and '\w+' in B, expected the same in both"):
        compare(kept(trip), kept(trip | other))


GOOD = document(series("trip", [[1.0, 2.0], [3.0]], unit="us"))
NO_TURNS = {"name": "s", "better": "lower"}


def with_turns(words: str) -> str:
    """A document whose only series has these turns."""
    return f'{{"bench": "latency", "series": [{{"name": "s", "better": "lower", "turns": {words}}}]}}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "got [], expected a benchmark's JSON document"),
        ('{"bench": "latency", "ser', "expected a benchmark's JSON document (Invalid JSON: EOF"),
        ("\0\1", "expected a benchmark's JSON document (Invalid JSON: "),
        ("[" * 100_000, "expected a benchmark's JSON document (Invalid JSON: recursion"),
        (json.dumps({"series": []}), "bench: got nothing, expected a value"),
        (json.dumps({"bench": "latency", "series": 5}), "series: got 5, expected a valid array"),
        (json.dumps(document({"better": "lower", "turns": [[1]]})), "series.0.name: got nothing, expected a value"),
        (json.dumps(document({"name": "s", "turns": [[1]]})), "series.0.better: got nothing, expected a value"),
        (json.dumps(document(NO_TURNS)), "series.0.turns: got nothing, expected a value"),
        (with_turns("[]"), "series.0.turns: got [], expected one at least"),
        (with_turns("[[1], []]"), "series.0.turns.1: got [], expected one at least"),
        (with_turns('[[1], [2, "a"]]'), "series.0.turns.1.1: got 'a', expected a valid number"),
        (with_turns('[["1"]]'), "series.0.turns.0.0: got '1', expected a valid number"),
        (with_turns("[[NaN, 2]]"), "series.0.turns.0.0: got nan, expected a finite number"),
        (with_turns("[[2, Infinity]]"), "series.0.turns.0.1: got inf, expected a finite number"),
        (with_turns("[[1e300]]"), "series.0.turns.0.0: got 1e+300, expected less than or equal to 1000000000000000"),
        (json.dumps(GOOD | {"series": GOOD["series"] * 2}), "got 2 series called 'trip', expected one of a name"),
        (json.dumps(GOOD | {"versions": None}), "versions: got None, expected an object"),
        (json.dumps(GOOD | {"versions": [1]}), "versions: got [1], expected an object"),
    ],
)
def test_what_is_no_document_is_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    """By 2: 1 would mean that something became worse."""
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    (tmp_path / "bad.json").write_text(content)
    for words in (("bad.json", "good.json"), ("good.json", "bad.json")):
        done = inside("bench", "compare", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("hudsim: bad.json: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [HUDSIM, [sys.executable, "-m"]])
def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path, command: list[str]) -> None:
    words = ["bench", "compare"] if command == HUDSIM else ["hudsim.bench.compare"]
    done = subprocess.run(
        [*command, *words, "a.json", "b.json"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == "hudsim: a.json: expected a benchmark's JSON document (No such file or directory)\n"


@pytest.mark.parametrize("limit", ["nan", "inf", "0", "-1", "much"])
def test_a_limit_that_nothing_could_be_held_to_is_refused(tmp_path: Path, limit: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(GOOD))
    done = inside("bench", "compare", "a.json", "a.json", "--fail-over", limit, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--fail-over: got '{limit}', expected a finite number above 0" in done.stderr


def test_too_few_samples_have_no_p999() -> None:
    assert quantiles([1.0] * 100)["p99.9"] is None
    assert quantiles([float(i) for i in range(10_000)])["p99.9"] == pytest.approx(9989, abs=1)
    assert set(quantiles([]).values()) == {None}
