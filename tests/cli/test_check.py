from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.command import LIMIT_S, alive, children, document, hudsim, started, told

BRIDGE = """
import numpy as np
from hudsim import RobotBridge

class Wrong(RobotBridge):
    contract = {"schema": "hudsim/1", "control_rate": 50.0, "features": {
        "observation/state": {"role": "observation", "dtype": "float32", "shape": [2]},
        "action": {"role": "action", "dtype": "float32", "shape": [2]}}}

    def reset(self, seed: int = 0) -> str:
        self.ticks = 0
        return "go wrong"

    def step(self, action) -> None:
        self.ticks += 1

    def get_observation(self):
        state = np.full((1, 2), np.nan if self.ticks > 3 else 0.0, np.float32)
        return {"observation/state": state}, np.array([False])
"""


def test_a_world_that_keeps_its_contract_is_well() -> None:
    done = hudsim("check", "test-card", "--set", "width=32", "--set", "height=32", "--set", "max_ticks=20")
    assert done.returncode == 0, done.stdout
    assert "✗" not in done.stdout
    assert "upright" in done.stdout
    assert done.stdout.splitlines()[-1] == "all is well"


def test_a_world_that_shows_nan_fails_the_check_by_the_features_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BRIDGE)
    done = hudsim("check", "mine.py:Wrong", cwd=tmp_path)
    assert done.returncode == 1
    assert any(line.startswith("✗") and "observation/state" in line for line in done.stdout.splitlines())
    said = json.loads(hudsim("check", "mine:Wrong", "--json", cwd=tmp_path).stdout)
    assert not said["ok"]
    assert "error" in {finding["severity"] for finding in said["findings"]}


def test_check_as_json() -> None:
    said = document("check", "pendulum", "--no-cameras")
    assert said["world"] == "pendulum"
    assert said["ok"]
    assert all(finding.keys() == {"what", "severity", "got", "expected"} for finding in said["findings"])


FATAL = """
import ctypes, os, sys, time
import numpy as np
from hudsim import Observation, RobotBridge

class Fatal(RobotBridge):
    contract = {"schema": "hudsim/1", "control_rate": 50.0, "features": {
        "observation/state": {"role": "observation", "dtype": "float32", "shape": [2]},
        "action": {"role": "action", "dtype": "float32", "shape": [2]}}}

    def __init__(self, how: str = "well", at: int = 15):
        self.how, self.at, self.steps = how, at, 0

    def reset(self, seed: int = 0) -> str:
        self.start = seed
        print("a world's own words", flush=True)
        return "go"

    def step(self, action) -> None:
        self.steps += 1
        if self.steps == self.at:
            {"well": lambda: None, "os._exit": lambda: os._exit(3), "segfault": lambda: ctypes.string_at(0),
             "sleep": lambda: time.sleep(600), "sys.exit": lambda: sys.exit(0), "kill": lambda: os.kill(os.getpid(), 9),
             "reward": lambda: None}[self.how]()

    def get_observation(self):
        reward = "a lot" if self.how == "reward" and self.steps >= self.at else np.zeros(1)
        return Observation({"observation/state": np.full((1, 2), self.start, np.float32)}, reward=reward)
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os._exit", "✗ determinism: the world's process ended with exit code 3"),
        ("segfault", "✗ determinism: the world's process died by SIGSEGV"),
        ("kill", "✗ determinism: the world's process died by SIGKILL"),
        ("sleep", "✗ determinism: no answer within 2 s, and the world's process was killed"),
        ("sys.exit", "✗ determinism: got SystemExit: 0 ("),
        ("reward", "✗ determinism: reward: got 'a lot'"),
    ],
)
def test_a_world_that_ends_or_hangs_is_a_finding_after_those_before_it(how: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FATAL)
    done = hudsim("check", "mine.py:Fatal", "--set", f"how={how}", "--watchdog", "2", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("✓ world: ")
    assert lines[1].startswith("✓ observations: ")
    assert lines[2].startswith(said)
    assert lines[-1].endswith("found something wrong")
    assert "Traceback" not in done.stderr


def test_an_interrupt_is_one_line_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FATAL)
    with started("check", "mine.py:Fatal", "--set", "how=sleep", "--set", "at=1", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("✓ world")
        worlds = children(process.pid)
        code, seconds, errors = told(process, signal.SIGINT)
    assert code == 130
    assert seconds < 2
    assert [line for line in errors.splitlines() if "words" not in line] == ["interrupted"]
    assert worlds
    assert not any(alive(world) for world in worlds)


def test_a_world_whose_checker_is_killed_ends_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FATAL)
    with started("check", "mine.py:Fatal", "--set", "how=sleep", "--set", "at=1", cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (world,) = children(process.pid)
        told(process, signal.SIGKILL)
    deadline = time.monotonic() + LIMIT_S
    while alive(world):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_a_world_prints_is_no_part_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FATAL)
    done = hudsim("check", "mine.py:Fatal", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["ok"]
    assert "a world's own words" in done.stderr


def test_what_cannot_be_imported_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nsys.exit(3)\n")
    done = hudsim("check", "mine.py:World", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "mine.py cannot be imported: SystemExit: 3" in done.stderr
