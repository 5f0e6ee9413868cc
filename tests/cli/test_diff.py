from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hudsim.cli.diff import first_difference
from tests.cli.command import document, hudsim

STATE, IMAGE = "observation/state", "observation/camera0"


def ticks(count: int) -> list[dict[str, str]]:
    return [{STATE: f"s{i}", IMAGE: f"i{i}", "reward": "r", "action": f"a{i}"} for i in range(count)]


def keep(folder: Path, episode: Sequence[dict[str, str]], **changes: Any) -> str:
    """A run of one episode, as ``hudsim run`` keeps it."""
    folder.mkdir()
    (folder / "episode-000.ticks.jsonl").write_text("".join(json.dumps(tick) + "\n" for tick in episode))
    one = {"seed": 0, "hash": "h", "image_hash": "i", "end": "terminated", "ticks": len(episode) - 1, **changes}
    run = {"world": "w", "policy": "p", "mode": "lockstep", "episodes": [one]}
    (folder / "run.json").write_text(json.dumps(run))
    return folder.name


def test_the_first_tick_and_all_features_that_differ_there() -> None:
    other = ticks(5)
    other[2] |= {STATE: "x", "action": "y"}
    other[4] |= {IMAGE: "z"}
    assert first_difference(ticks(5), other) == (2, (STATE, "action"))
    assert first_difference(ticks(5), ticks(5)) is None
    assert first_difference(ticks(5), ticks(3)) == (3, (STATE, IMAGE, "reward", "action"))


def test_runs_of_one_seed_are_the_same_and_of_another_policy_differ(tmp_path: Path) -> None:
    world = ("test-card", "--set", "width=32", "--set", "height=16", "--max-steps", "5")
    for name, options in (("a", ()), ("b", ()), ("c", ("--policy-set", "seed=1"))):
        document("run", *world, "-p", "random", *options, "--out", name, cwd=tmp_path)
    same = hudsim("diff", "a", "b/run.json", cwd=tmp_path)
    assert (same.returncode, same.stdout) == (0, "seed 0: the same\n")
    other = hudsim("diff", "a", "c", cwd=tmp_path)
    assert (other.returncode, other.stdout) == (1, "seed 0: tick 0: action\n")


def test_images_that_differ_alone_are_said_to(tmp_path: Path) -> None:
    other = ticks(4)
    other[1][IMAGE] = "x"
    a, b = keep(tmp_path / "a", ticks(4)), keep(tmp_path / "b", other, image_hash="j")
    done = hudsim("diff", a, b, cwd=tmp_path)
    assert done.returncode == 1
    assert f"tick 1: {IMAGE} (images alone" in done.stdout


def test_a_run_that_ends_earlier_differs_where_it_ends(tmp_path: Path) -> None:
    a, b = keep(tmp_path / "a", ticks(4)), keep(tmp_path / "b", ticks(3), hash="g", end="truncated")
    done = hudsim("diff", a, b, "--json", cwd=tmp_path)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert not said["same"]
    assert said["seeds"][0]["tick"] == 3
    assert "terminated after 3 ticks and truncated after 2 ticks" in said["seeds"][0]["words"]


def test_the_run_that_is_not_there_or_has_no_ticks_is_named(tmp_path: Path) -> None:
    a, b = keep(tmp_path / "a", ticks(2)), keep(tmp_path / "b", ticks(2), hash="g")
    assert hudsim("diff", a, "c", cwd=tmp_path).stderr == "hudsim: no run in c: there is no such file or folder\n"
    (tmp_path / "b/episode-000.ticks.jsonl").unlink()
    assert hudsim("diff", a, b, cwd=tmp_path).stdout == "seed 0: hash differs; no ticks in b to say where\n"


def test_what_is_no_run_or_kept_no_fingerprints_is_refused(tmp_path: Path) -> None:
    run = tmp_path / keep(tmp_path / "a", ticks(2)) / "run.json"
    run.write_text(run.read_text().replace("lockstep", "realtime"))
    assert "realtime" in hudsim("diff", "a", "a", cwd=tmp_path).stderr
    run.write_text("[]")
    done = hudsim("diff", "a", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a run's" in done.stderr
