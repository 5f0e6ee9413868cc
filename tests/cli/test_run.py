from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import LIMIT_S, alive, children, document, hudsim, serving, started, told

SMALL = ("--set", "width=32", "--set", "height=16")
KEYS = {
    *("world", "policy", "mode", "transport", "encodings", "success_rate", "mean_reward"),
    *("episodes", "cadence", "artifacts", "problems"),
}
STAGES = ("step", "render", "encode", "wire", "adapt", "infer", "apply")
OF_LINKS = {"compress", "decompress"}
POLICY = """
import atexit
import ctypes
import numpy as np
from hudsim import Adapter, Model, RobotAgent, RobotBridge

print("imported")
atexit.register(print, "gone")

class Raises(Model):
    def infer(self, batch):
        raise RuntimeError("no [idea] at all")

class Still(Model):
    def __init__(self, chunk: int = 2):
        self.chunk = chunk

    def infer(self, batch):
        ctypes.CDLL(None).puts(b"written in C")
        return np.zeros((1, self.chunk, 5), np.float32)

def agent() -> RobotAgent:
    return RobotAgent(Still())

class Ones(Adapter):
    def adapt_chunk(self, chunk, data):
        return np.full_like(chunk, 0.1)

class Rigid(RobotBridge):
    contract = {"schema": "hudsim/1", "control_rate": 50.0, "features": {
        "observation/state": {"role": "observation", "dtype": "float32", "shape": [2]},
        "action": {"role": "action", "dtype": "float32", "shape": [5]}}}
    def reset(self, seed: int = 0) -> str: return ""
    def step(self, action) -> None: self.broken = 1 / 0
    def get_observation(self): return {"observation/state": np.zeros((1, 2), np.float32)}, np.array([False])
"""


@pytest.mark.parametrize("mode", ["lockstep", "paced", "realtime"])
def test_run_prints_one_document_in_each_mode(mode: str) -> None:
    said = document("run", "test-card", "-p", "random", "-n", "2", "--seed", "3", *SMALL,
                    "--mode", mode, "--max-steps", "10")  # fmt: skip
    assert said.keys() == KEYS
    assert [said[key] for key in ("world", "policy", "mode", "transport")] == ["test-card", "random", mode, "socket"]
    assert [episode["seed"] for episode in said["episodes"]] == [3, 4]
    for episode in said["episodes"]:
        assert episode["end"] == "max_steps"
        assert episode["ticks"] >= 10
        assert episode.keys() >= {"seed", "reward", "success", "end", "ticks", "hash"}
        assert (episode["hash"] is None) == (mode == "realtime")
    cadence = said["cadence"]
    assert cadence["rate_asked_hz"] == (None if mode == "lockstep" else 50.0)
    assert cadence["rate_achieved_hz"] > 0
    assert cadence["ticks"] >= 20
    assert (cadence["late_us"] is None) == (mode == "lockstep")
    assert {name for name, stage in cadence["stages_us"].items() if stage is None} == OF_LINKS
    stages = {name: stage for name, stage in cadence["stages_us"].items() if name not in OF_LINKS}
    assert tuple(stages) == STAGES
    assert all(stage["p50"] <= stage["p99"] for stage in stages.values())
    assert cadence["frame_bytes"]["p50"] > 2 * 32 * 16 * 3


def test_run_prints_a_table_and_keeps_the_run(tmp_path: Path) -> None:
    done = hudsim("run", "test-card", "-p", "hold", "--set", "max_ticks=5", *SMALL, "--out", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    for word in ("test-card", "success", "reward", "truncated 1", "rate", "p99", *STAGES, "kept/run.json"):
        assert word in done.stdout
    kept = json.loads((tmp_path / "kept/run.json").read_text())
    assert kept.keys() == KEYS
    assert len((tmp_path / "kept/episode-000.ticks.jsonl").read_text().splitlines()) == 6


def test_a_policy_that_needs_privileged_features_gets_them() -> None:
    said = document("run", "arm-reach", "-p", "scripted", "--no-cameras")
    assert said["success_rate"] == 1.0


def test_the_rate_asked_for_is_the_physics_too() -> None:
    said = document("run", "pendulum", "-p", "hold", "--no-cameras", "--rate", "25", "--mode", "paced",
                    "--max-steps", "3")  # fmt: skip
    assert said["cadence"]["rate_asked_hz"] == 25
    refused = hudsim("run", "arm-reach", "-p", "hold", "--no-cameras", "--rate", "30")
    assert refused.returncode == 2
    assert "0.002 s" in refused.stderr


def test_run_plays_a_server_that_runs_already() -> None:
    with serving("test-card", *SMALL, "--mode", "realtime") as (process, server):
        said = document("run", server["url"], "-p", "random", "--max-steps", "5", "--set", "prompt=look")
        assert said["mode"] == "realtime"
        assert said["world"] == server["url"].partition("?")[0]
        refused = hudsim("run", server["url"], "-p", "random", "--set", "promt=look")
        assert refused.returncode == 2
        assert "did you mean 'prompt'?" in refused.stderr
        assert process.poll() is None


def test_run_sees_on_one_host_what_another_would() -> None:
    with serving("test-card", "--set", "width=128", "--set", "height=64", "--encode", "jpeg:80") as (_, server):
        words = ("run", server["url"], "-p", "random", "--max-steps", "5")
        near, far = document(*words), document(*words, "--transport", "socket")
    assert (near["transport"], near["encodings"]) == ("shm", {})
    assert far["transport"] == "socket"
    assert set(far["encodings"].values()) == {"jpeg:80"}
    assert far["cadence"]["stages_us"]["decompress"]["p50"] > 0


def test_ones_own_policy_from_a_file_or_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    for policy in ("mine.py:Still", "mine:agent"):
        said = document("run", "test-card", "-p", policy, *SMALL, "--max-steps", "4", cwd=tmp_path)
        assert said["policy"] == policy
        assert said["episodes"][0]["ticks"] == 4


def test_a_policy_that_raises_ends_the_run_with_1_and_its_words(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    done = hudsim("run", "test-card", "-p", "mine:Raises", *SMALL, cwd=tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: no [idea] at all" in done.stdout
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback_of_a_policy_or_world_that_raises(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    for words, line in (
        (("mine:Rigid", "-p", "mine:Still"), "self.broken = 1 / 0"),
        (("test-card", "-p", "mine:Raises", *SMALL), 'raise RuntimeError("no [idea] at all")'),
    ):
        done = hudsim("run", *words, "--json", "--debug", cwd=tmp_path)
        assert done.returncode == 1
        assert line in done.stderr
        assert json.loads(done.stdout)["episodes"][0]["error"]


def test_what_a_policy_prints_is_no_part_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    done = hudsim("run", "test-card", "-p", "mine:Still", *SMALL, "--max-steps", "4", "--json", cwd=tmp_path)
    assert json.loads(done.stdout).keys() == KEYS
    for words in ("imported", "written in C", "gone"):
        assert words in done.stderr


def test_an_adapter_of_ones_own_and_chunks_for_an_agent(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    run = ("run", "test-card", *SMALL, "--max-steps", "4", "--out")
    for name, words in (("a", ("mine:Still",)), ("b", ("mine.py:agent", "--chunk", "1")),
                        ("c", ("mine:Still", "--adapter", "mine.py:Ones"))):  # fmt: skip
        document(*run, name, "-p", *words, cwd=tmp_path)
    assert hudsim("diff", "a", "b", cwd=tmp_path).stdout.endswith("seed 0: the same\n")
    assert "tick 0: action" in hudsim("diff", "a", "c", cwd=tmp_path).stdout
    refused = hudsim(*run, "d", "-p", "mine:agent", "--adapter", "mine:Ones", cwd=tmp_path)
    assert refused.returncode == 2
    assert "is a whole agent" in refused.stderr


def test_an_episode_that_was_aborted_ends_the_run_with_1_whatever_the_reason() -> None:
    done = hudsim("run", "test-card", "-p", "random", *SMALL, "--set", 'faults={"nan_at": 3}', "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["episodes"][0]["end"] == "aborted(sim_diverged)"


def test_a_rate_that_a_world_cannot_be_made_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    done = hudsim("run", "mine:Rigid", "-p", "hold", "--rate", "20", cwd=tmp_path)
    assert done.returncode == 2
    assert "a rate of its own, got 20 Hz" in done.stderr


def test_a_server_that_hides_what_the_policy_needs_is_to_be_started_privileged() -> None:
    with serving("pendulum", "--no-cameras") as (_, server):
        done = hudsim("run", server["url"], "-p", "mpc", "--max-steps", "2")
    assert done.returncode == 2
    assert "`hudsim serve --privileged`" in done.stderr


def test_a_sim_that_raises_is_an_error_never_a_zero() -> None:
    done = hudsim("run", "test-card", "-p", "random", *SMALL, "--set", 'faults={"raise_at": 3}', "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["success_rate"] is None
    assert said["mean_reward"] is None
    assert said["episodes"][0]["end"] == "aborted(sim_failed)"
    assert "RuntimeError" in said["episodes"][0]["error"]


def test_a_sim_that_hangs_ends_within_its_watchdog() -> None:
    done = hudsim("run", "test-card", "-p", "random", *SMALL, "--set", 'faults={"hang_at": 3}', "--watchdog", "0.5")
    assert done.returncode == 1
    assert "aborted(sim_hung)" in done.stdout


def test_an_interrupt_keeps_what_was_recorded_and_leaves_no_process(tmp_path: Path) -> None:
    words = ("run", "test-card", "-p", "random", *SMALL, "--mode", "paced", "-n", "100", "--max-steps", "10")
    with started(*words, "--out", "kept", cwd=tmp_path) as process:
        deadline = time.monotonic() + LIMIT_S
        while not (tmp_path / "kept/episode-000.ticks.jsonl").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        sims = children(process.pid)
        code, seconds, errors = told(process, signal.SIGINT)
    assert code == 130
    assert seconds < 2
    assert "of 100 episodes ran; kept in kept" in errors
    assert "Traceback" not in errors
    assert sims
    assert not any(alive(sim) for sim in sims)
    kept = json.loads((tmp_path / "kept/run.json").read_text())
    assert 0 < len(kept["episodes"]) < 100


def test_where_there_is_no_opengl_one_line_says_how_to_go_on() -> None:
    nowhere = {"MUJOCO_GL": "egl", "__EGL_VENDOR_LIBRARY_DIRS": "/nonexistent"}
    done = hudsim("run", "arm-lift", "-p", "hold", environment=nowhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "--no-cameras" in done.stderr
    again = hudsim("run", "arm-lift", "-p", "hold", "--no-cameras", "--max-steps", "2", environment=nowhere)
    assert again.returncode == 0, again.stderr


def test_video_of_a_world_without_cameras_is_refused() -> None:
    pytest.importorskip("av")
    done = hudsim("run", "pendulum", "-p", "hold", "--no-cameras", "--video", "--out", "/dev/null/x")
    assert done.returncode == 2


def test_a_gymnasium_environment_takes_settings_and_is_drawn_for_a_video(tmp_path: Path) -> None:
    pytest.importorskip("av")
    done = hudsim("run", "gym:HalfCheetah-v5", "-p", "random", "--set", "ctrl_cost_weight=0.2", "--set", "width=64",
                  "--set", "height=64", "--max-steps", "3", "--video", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/gym-HalfCheetah-v5-random/episode-000.mp4").stat().st_size > 0


def test_a_disk_that_is_full_costs_the_files_not_the_report(tmp_path: Path) -> None:
    # What a full disk does to a write, a limit on the size of files does too.
    words = ["hudsim", "run", "test-card", "-p", "hold", "--max-steps", "100", "--out", str(tmp_path), "--json"]
    script = (
        "import resource, signal, runpy, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))\n"
        f"sys.argv = {words!r}\n"
        "runpy.run_module('hudsim.cli', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=tmp_path
    )
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["episodes"][0]["end"] == "max_steps"
    (problem,) = report["problems"]
    assert str(tmp_path / "episode-000.ticks.jsonl") in problem
    assert "too large" in problem
    assert json.loads((tmp_path / "run.json").read_text())["episodes"] == report["episodes"]
    assert "Traceback" not in done.stderr


def test_a_folder_that_takes_no_files_is_a_usage_error() -> None:
    done = hudsim("run", "test-card", "-p", "hold", "--out", "/proc/self/nowhere")
    assert done.returncode == 2
    assert "nothing can be kept in /proc/self/nowhere" in done.stderr
