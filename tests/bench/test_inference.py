"""``hudsim bench inference --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudsim.bench.inference.picture import draw
from tests.bench.pictures import drawn
from tests.cli.command import hudsim

pytestmark = pytest.mark.xdist_group("bench-inference")  # one measurement for all of them


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed is one document, and the folder holds the same."""
    out = tmp_path_factory.mktemp("out")
    done = hudsim("bench", "inference", "--quick", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "inference.json").read_text()) == measured
    return measured


def test_each_strategy_meets_each_inference_time(document: dict[str, Any]) -> None:
    cells = [(row["strategy"], row["infer_ms"]) for row in document["rows"]]
    assert cells == [(strategy, ms) for strategy in ("open-loop", "receding") for ms in (20, 100)]
    for row in document["rows"]:
        assert row["episodes"] == 1
        assert row["ticks"] > 0
        assert 0 < row["executed_hz"] <= 50.5


def test_open_loop_starves_for_as_long_as_it_infers(document: dict[str, Any]) -> None:
    starved = {(row["strategy"], row["infer_ms"]): row["starved_share"] for row in document["rows"]}
    assert starved["open-loop", 100] > 0.15, "5 ticks of an inference, 16 of a chunk"


def test_its_picture_shows_something(document: dict[str, Any]) -> None:
    assert drawn(draw, document) > 20
