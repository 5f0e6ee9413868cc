"""``hudsim bench jitter --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.bench.jitter.loads import LOADS
from hudsim.bench.jitter.picture import draw
from tests.bench.pictures import drawn
from tests.cli.command import hudsim

pytestmark = pytest.mark.xdist_group("bench-jitter")  # one measurement for all of them


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed is one document, and the folder holds the same."""
    out = tmp_path_factory.mktemp("out")
    done = hudsim("bench", "jitter", "--quick", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "jitter.json").read_text()) == measured
    return measured


def test_the_world_ticks_under_each_load(document: dict[str, Any]) -> None:
    rows = document["rows"]
    assert [(row["rate_hz"], row["load"]) for row in rows] == [(100, load) for load in LOADS]
    for row in rows:
        assert row["ticks"] >= int(0.3 * row["rate_hz"])
        assert 0 <= row["missed_share"] < 1
        assert row["late_us"]["p50"] <= row["late_us"]["p99"] <= row["late_us"]["max"]


def test_each_tick_is_seen_from_both_sides(document: dict[str, Any]) -> None:
    found = {one["name"]: one["turns"][0] for one in document["series"]}
    for row in document["rows"]:
        name = f"{row['rate_hz']} Hz · {row['load']}"
        assert len(found[f"{name} · late"]) == row["ticks"]
        arrivals = found[f"{name} · arrival"]
        assert min(arrivals) == 0, "held against the promptest"
        assert 0 < len(arrivals) <= row["ticks"]


def test_rates_that_are_none_are_refused() -> None:
    done = hudsim("bench", "jitter", "--rates", "0")
    assert done.returncode == 2
    assert "expected whole numbers from 1" in done.stderr


def test_its_picture_shows_something(document: dict[str, Any]) -> None:
    assert drawn(draw, document) > 20
