"""A world is checked in a process of its own, and nothing of it is left."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from hudsim.bridges.testcard import TestCardVectorBridge, recognise
from hudsim.errors import UsageError
from hudsim.robot.spec import WorldSpec
from hudsim.testing.apart import check_apart
from hudsim.testing.checks import check_bridge

SMALL: dict[str, Any] = {"width": 64, "height": 64, "cameras": 1, "max_ticks": 20}
CARD = WorldSpec("hudsim.bridges.testcard:TestCardVectorBridge", SMALL)
FORKS = """
import os
import time
from hudsim.bridges.testcard import TestCardBridge

def forks(file):
    if os.fork() == 0:
        time.sleep(600)
    with open(file, "w") as out:
        out.write(f"{os.getpid()}")
    os._exit(5)

class Hangs(TestCardBridge):
    def __init__(self, file):
        super().__init__(width=32, height=32)
        with open(file, "w") as out:
            out.write(f"{os.getpid()}")

    def step(self, action):
        time.sleep(600)
"""


def gone(group: int) -> bool:
    """Whether a process group is empty, within a moment: the kernel reaps the orphans."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_the_findings_are_those_of_the_same_checks_here() -> None:
    apart = list(check_apart(CARD, recognise="hudsim.bridges.testcard:recognise"))
    here = check_bridge(lambda num_envs=1: TestCardVectorBridge(num_envs=num_envs, **SMALL), recognise=recognise)
    assert [finding.what for finding in apart] == [finding.what for finding in here]
    assert all(finding.ok for finding in apart)


def test_a_death_is_told_while_children_of_the_world_live_on_and_they_end_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FORKS)
    found = list(check_apart(WorldSpec(f"{tmp_path}/mine.py:forks", {"file": str(tmp_path / "pid")}), watchdog_s=30))
    assert [str(finding) for finding in found] == ["world: the world's process ended with exit code 5"]
    assert gone(int((tmp_path / "pid").read_text()))


def test_closing_the_iterator_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FORKS)
    found = check_apart(WorldSpec(f"{tmp_path}/mine.py:Hangs", {"file": str(tmp_path / "pid")}))
    assert next(found).what == "world"
    found.close()
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_spec_that_names_nothing_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        list(check_apart(WorldSpec(f"{tmp_path}/broken.py:World")))
    with pytest.raises(UsageError, match="no file"):
        list(check_apart(WorldSpec(f"{tmp_path}/nowhere.py:World")))
