"""``hudsim bench scale --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.bench.scale.picture import draw
from hudsim.bench.scale.rung import LIMIT, Rung
from hudsim.robot.cadence import Cadence
from tests.bench.pictures import drawn
from tests.cli.command import hudsim

pytestmark = pytest.mark.xdist_group("bench-scale")  # one measurement for all of them


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed is one document, and the folder holds the same."""
    out = tmp_path_factory.mktemp("out")
    done = hudsim("bench", "scale", "--quick", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "scale.json").read_text()) == measured
    return measured


def test_the_ladder_is_climbed_while_worlds_are_served(document: dict[str, Any]) -> None:
    for world in ("state", "camera"):
        rungs = [rung for rung in document["rungs"] if rung["world"] == world]
        assert rungs[0]["worlds"] == 1
        assert len(rungs) == 2 if rungs[0]["served"] else len(rungs) == 1
        assert not any(rung["errors"] for rung in rungs)
        most = max((rung["worlds"] for rung in rungs if rung["served"]), default=0)
        assert {"world": world, "processes": 1, "worlds": most} in document["served"]


def test_lockstep_is_measured_over_slots_and_processes(document: dict[str, Any]) -> None:
    paces = [(pace["world"], pace["processes"], pace["worlds"]) for pace in document["paces"]]
    assert paces == [("state", 1, 2), ("camera", 1, 2)]
    assert all(pace["steps_per_s"] > 0 for pace in document["paces"])
    assert {one["better"] for one in document["series"]} == {"higher"}


@pytest.mark.parametrize(
    ("worst", "errors", "served"), [(0.0, [], True), (LIMIT, [], False), (0.0, ["aborted(sim_hung)"], False)]
)
def test_one_late_or_broken_world_is_enough_not_to_count(worst: float, errors: list[str], served: bool) -> None:
    assert Rung("state", 1, 4, "shm", worst, Cadence(50.0), errors).served is served


def test_its_picture_shows_something(document: dict[str, Any]) -> None:
    assert drawn(draw, document) > 20
