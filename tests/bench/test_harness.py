"""``hudsim bench harness --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hudsim.bench.harness.watch import STAGES
from tests.cli.command import hudsim

pytestmark = pytest.mark.xdist_group("bench-harness")  # one measurement for all of them

Measured = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it runs, and makes its temporary files."""
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Measured:
    out = tmp_path_factory.mktemp("out")
    words = ("bench", "harness", "--quick", "--json", "--profile", "--out", str(out))
    done = hudsim(*words, cwd=folder, environment={"TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return done, json.loads((out / "harness.json").read_text())


def test_what_is_printed_is_one_document_and_the_file_holds_the_same(measured: Measured) -> None:
    done, document = measured
    assert json.loads(done.stdout) == document
    assert document["thousand_s"] > 0


def test_the_profile_is_on_stderr(measured: Measured) -> None:
    assert "tottime" in measured[0].stderr


def test_every_run_of_a_kept_job_is_on_the_disk(measured: Measured) -> None:
    kept = [row for row in measured[1]["throughput"] if "committed" in row["system"]]
    assert [(row["system"], row["at_once"]) for row in kept] == [
        (f"{place}, committed", at_once) for place in ("local", "subprocess") for at_once in (1, 8)
    ]
    assert {row["rows_kept"] for row in kept} == {20}  # ten, and ten that warm up


def test_each_system_has_its_floor(measured: Measured) -> None:
    held = [row for row in measured[1]["throughput"] if row["floor_ms"] is not None]
    assert len(held) == 6
    assert all(row["ratio_to_floor"] > 0 for row in held)


def test_a_seeds_episode_is_the_same_bare_and_graded(measured: Measured) -> None:
    episode = measured[1]["episode"]
    assert episode["same_ticks"]
    assert episode["ticks"] > 0


def test_each_stage_of_a_run_is_seen(measured: Measured) -> None:
    for stages in measured[1]["stages_us"].values():
        assert tuple(stages) == STAGES
    assert all(us > 0 for us in measured[1]["stages_us"]["run"].values())


def test_nothing_is_left_behind(measured: Measured, folder: Path) -> None:
    assert not list(folder.iterdir())
