"""``hudsim bench latency --quick``: its function; its numbers say nothing here."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hudsim.bench.latency.command import show
from hudsim.bench.latency.payload import PAYLOADS, Payload
from hudsim.bench.latency.picture import draw
from tests.bench.pictures import drawn
from tests.cli.command import hudsim

pytestmark = pytest.mark.xdist_group("bench-latency")  # one measurement for all of them

SYSTEMS = ["tcp", "websockets", "hudsim, socket", "hudsim, shm"]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed is one document, and the folder holds the same."""
    out = tmp_path_factory.mktemp("out")
    done = hudsim("bench", "latency", "--quick", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "latency.json").read_text()) == measured
    return measured


def test_every_system_has_its_row_on_every_payload(document: dict[str, Any]) -> None:
    rows = [(row["payload"], row["system"]) for row in document["rows"]]
    assert rows == [(payload, system) for payload in ("state", "2x224") for system in SYSTEMS]
    assert [one["name"] for one in document["series"]] == [f"{payload}, camera · {system}" for payload, system in rows]


def test_hudsims_own_rows_alone_are_judged_and_a_quick_run_says_that_it_is_one(document: dict[str, Any]) -> None:
    judged = [row["system"] for row, one in zip(document["rows"], document["series"], strict=True) if one["judged"]]
    assert judged == ["hudsim, socket", "hudsim, shm"] * 2
    assert document["quick"] is True


def test_its_tables_are_whole_and_fit_80_columns(document: dict[str, Any]) -> None:
    wide = [{**row, "us": dict.fromkeys(row["us"], 12345.0)} for row in document["rows"]]
    console = Console(width=80, file=io.StringIO(), highlight=False)
    show({**document, "rows": wide}, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count("12345") == 5 * len(wide)
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_peer_that_is_not_installed_is_one_line_that_says_what_to_install() -> None:
    done = hudsim("bench", "latency", "--quick", "--payload", "state", "--peer", f"hud={sys.executable}")
    assert done.returncode == 2
    assert f"{sys.executable} -m pip install 'hud[robot]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "state: 3 turns of each of 5 systems" in done.stderr, "what it is at"


def test_a_row_is_its_turns(document: dict[str, Any]) -> None:
    for row, measured in zip(document["rows"], document["series"], strict=True):
        trips = np.concatenate(measured["turns"])
        assert len(measured["turns"]) == 3
        assert row["trips"] == len(trips) >= 9
        assert row["us"]["p50"] == pytest.approx(np.median(trips), abs=0.1)
        assert row["us"]["p99.9"] is None, "too few to say"
        assert row["client_cpu_us"] > 0


def test_the_ratio_is_to_the_websockets_floor_of_the_payload(document: dict[str, Any]) -> None:
    floors = {row["payload"]: row["us"]["p50"] for row in document["rows"] if row["system"] == "websockets"}
    for row in document["rows"]:
        assert row["ratio"] == pytest.approx(row["us"]["p50"] / floors[row["payload"]], abs=0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="counted by Linux")
def test_images_cross_the_socket_or_the_memory_and_not_both(document: dict[str, Any]) -> None:
    images = PAYLOADS["2x224"].image_bytes
    crossed = {row["system"]: row["socket_bytes"] for row in document["rows"] if row["payload"] == "2x224"}
    shared = {row["system"]: row["memory_bytes"] for row in document["rows"] if row["payload"] == "2x224"}
    assert crossed.pop("hudsim, shm") < 2000
    assert shared.pop("hudsim, shm") == images
    assert all(images < count < images + 2000 for count in crossed.values()), crossed
    assert not any(shared.values())


@pytest.mark.skipif(sys.platform != "linux", reason="counted by Linux")
def test_the_servers_processor_time_is_counted(document: dict[str, Any]) -> None:
    assert all(row["server_cpu_us"] > 0 for row in document["rows"])


def test_all_slots_are_played_by_one_process(tmp_path: Path) -> None:
    opening = Payload(1, 16, 16, slots=3).write(tmp_path / "arrays.npz", "render")
    systems = Path(__file__).parents[2] / "bench" / "latency" / "systems"
    for system in ("tcp_floor", "websockets_floor", "hudsim_shm"):
        done = subprocess.run(
            [sys.executable, str(systems / "play.py"), str(systems / f"{system}.py")],
            input=json.dumps({"payload": opening}) + "\n" + json.dumps({"trips": 4, "budget_s": 30.0}) + "\n",
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said, turn = map(json.loads, done.stdout.splitlines())
        assert said["python"]
        assert len(turn["ns"]) == 4
        if sys.platform == "linux":
            assert turn["socket_bytes"] >= 4 * 3 * opening["bytes"], "three observations a trip"


def test_a_peer_that_is_none_is_refused() -> None:
    for words, said in (("vla=python3", "expected openpi-client=PYTHON or hud=PYTHON"), ("hud=no/python", "no interp")):
        done = hudsim("bench", "latency", "--peer", words)
        assert done.returncode == 2
        assert said in done.stderr


def test_noise_does_not_compress_and_shades_do(tmp_path: Path) -> None:
    import zlib

    left = {}
    for content in ("camera", "render"):
        Payload(1, 224, 224).write(tmp_path / "arrays.npz", content)
        with np.load(tmp_path / "arrays.npz") as arrays:
            image = arrays["camera0"]
        left[content] = len(zlib.compress(image.tobytes())) / image.nbytes
    assert left["camera"] > 0.8
    assert left["render"] < 0.2


def test_its_picture_shows_something(document: dict[str, Any]) -> None:
    assert drawn(draw, document) > 20


def test_the_panels_of_its_picture_share_an_axis_whose_labels_stand_apart(document: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    for slowest in (1.0, 30.0, 300.0):
        turns = [[slowest * sample for sample in turn] for turn in document["series"][-1]["turns"]]
        last = {**document["series"][-1], "turns": turns}
        figure = draw({**document, "series": [*document["series"][:-1], last]})
        figure.savefig(io.BytesIO(), dpi=100)
        assert len({ax.get_xlim() for ax in figure.axes}) == 1
        for ax in figure.axes:
            low, high = ax.get_xlim()
            ticks = [tick for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: box.x0)
            assert len(boxes) >= 2
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
