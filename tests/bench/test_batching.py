"""``hudsim bench batching --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bench.batching import MODELS, SYSTEMS, Mlp, Priced, draw
from tests.bench.pictures import drawn

pytestmark = pytest.mark.xdist_group("bench-batching")  # one measurement for all of them

AGENTS = (1, 3)
LIMIT_S = 50


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def document(out: Path) -> dict[str, Any]:
    words = ["--quick", "--agents", "1,3", "--json", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "hudsim.bench.batching", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_the_folder_holds_what_is_printed(document: dict[str, Any], out: Path) -> None:
    assert json.loads((out / "batching.json").read_text()) == document


def test_each_system_is_measured_with_each_model_and_number_of_agents(document: dict[str, Any]) -> None:
    rows = [(row["model"], row["agents"], row["system"]) for row in document["rows"]]
    assert rows == [(model, agents, system) for model in MODELS for agents in AGENTS for system in SYSTEMS]
    for row in document["rows"]:
        assert row["actions_per_s"] > 0
        assert 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p99"]
    assert len(document["series"]) == 2 * len(rows)


def test_one_by_one_no_call_is_shared_and_the_floor_shares_all(document: dict[str, Any]) -> None:
    for row in document["rows"]:
        rows_per_call = row["rows_per_call"]
        if row["system"] == "one by one":
            assert rows_per_call == 1
        elif row["system"] == "one loop":
            assert rows_per_call == row["agents"]
            assert row["share_of_floor"] == 1
        else:
            assert 1 <= rows_per_call <= row["agents"]


def test_batched_agents_share_calls(document: dict[str, Any]) -> None:
    shared = [row["rows_per_call"] for row in document["rows"] if row["system"] == "batched" and row["agents"] == 3]
    assert max(shared) > 1


def test_its_picture_shows_something(document: dict[str, Any]) -> None:
    assert drawn(draw, document) > 20


def test_its_models_give_a_chunk_a_row() -> None:
    for model in (Priced(0.0, 0.0), Mlp(hidden=32)):
        state = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
        together = model.infer({"state": state})
        assert together.shape == (3, 8, 7)
        np.testing.assert_allclose(together[1:2], model.infer({"state": state[1:2]}), atol=1e-5)
        assert model.calls == [3, 1]
