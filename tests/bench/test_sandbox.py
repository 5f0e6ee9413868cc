"""``hudsim bench sandbox --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hudsim.bench.sandbox.rung import PHASES, STAGES
from tests.cli.command import hudsim

pytestmark = [
    pytest.mark.xdist_group("bench-sandbox"),  # one measurement for all of them
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's"),
]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed is one document, and the file holds the same."""
    out = tmp_path_factory.mktemp("out")
    done = hudsim("bench", "sandbox", "--quick", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "sandbox.json").read_text()) == measured
    return measured


def test_each_rung_is_climbed_as_often_as_it_takes(document: dict[str, Any]) -> None:
    assert [(rung["width"], rung["creates"]) for rung in document["rungs"]] == [(1, 4), (4, 4)]
    assert document["creates"] == 8


def test_each_phase_and_stage_is_measured(document: dict[str, Any]) -> None:
    for rung in document["rungs"]:
        assert set(rung["ms"]) == {*PHASES, *STAGES}
        assert all(0 < ms["p50"] <= ms["p95"] <= ms["p99"] <= ms["max"] for ms in rung["ms"].values())
        assert rung["memory_mib"] > 0
        assert rung["stall_ms"]["max"] >= 0


def test_nothing_fails_and_nothing_is_left(document: dict[str, Any]) -> None:
    for rung in document["rungs"]:
        assert rung["failures"] == {}
        assert set(rung["left"]) == {"processes", "folders", "cgroups", "descriptors", "keys"}
        assert not any(rung["left"].values()), rung["left"]


def test_what_is_held_to_a_limit_is_held_to_the_floor_of_the_same_run(document: dict[str, Any]) -> None:
    floor = {rung["width"]: rung["ms"]["bare"]["p50"] for rung in document["rungs"]}
    limits = {limit["what"]: limit["at_most_ms"] for limit in document["limits"]}
    assert limits == {
        "start, 1 at once, p50": 100.0,
        "warm, 1 at once, p50": pytest.approx(2 * floor[1] + 5, abs=0.01),
        "warm, 4 at once, p50": pytest.approx(2 * floor[4] + 5, abs=0.01),
    }


def test_a_ladder_that_is_none_is_refused() -> None:
    done = hudsim("bench", "sandbox", "--ladder", "1,x")
    assert done.returncode == 2
    assert "expected whole numbers from 1, as in 1,4,16" in done.stderr


def test_what_it_prints_for_people(tmp_path: Path) -> None:
    done = hudsim("bench", "sandbox", "--ladder", "1", "--creates", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("first command", "open files", "nothing", "start, 1 at once, p50: "):
        assert words in done.stdout
    assert not list(tmp_path.iterdir())
