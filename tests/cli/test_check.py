from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import document, hudsim

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
