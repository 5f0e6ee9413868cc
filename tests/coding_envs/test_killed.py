"""SIGKILL amid graded coding runs: what was finished stays, nothing else does, and the rest is run, once."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from hudsim.coding.cgroups import Controllers
from hudsim.coding.place import state_folder
from tests.cli.command import HUDSIM
from tests.coding.test_left_behind import processes_of

RUNS, GROUP = 64, 4
GONE_S = 2.0
LIMIT_S = 200.0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
def test_a_driver_killed_amid_64_runs_has_lost_none_that_was_finished_and_leaves_nothing(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    words = [*f"eval calc oracle --group {GROUP} --max-concurrent 8 --json --runs".split(), str(tmp_path)]
    with (tmp_path / "err").open("wb") as err:
        driver = subprocess.Popen([*HUDSIM, *words], stdout=subprocess.DEVNULL, stderr=err)
    some = chance.randint(4, 40)
    until(lambda: len(rows(tmp_path)) >= some or driver.poll() is not None, LIMIT_S)
    time.sleep(chance.random() * 0.3)
    assert driver.poll() is None, (tmp_path / "err").read_text()
    before = rows(tmp_path)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    until(lambda: not left_of(driver.pid), GONE_S)
    kept = rows(tmp_path)
    assert before.items() <= kept.items()
    again = subprocess.run([*HUDSIM, *words, "--resume", "last"], capture_output=True, timeout=LIMIT_S, check=False)
    assert again.returncode == 0, again.stderr.decode()
    said, now = json.loads(again.stdout), rows(tmp_path)
    assert said["verdicts"] == {"passed": RUNS}
    assert kept.items() <= now.items()
    assert [(run["task"], run["index"]) for run in said["runs"]] == [
        (slug, index) for slug in dict.fromkeys(run["task"] for run in said["runs"]) for index in range(GROUP)
    ]
    assert len(now) == RUNS
    assert not left_of(driver.pid)


def rows(folder: Path) -> dict[str, str]:
    """What is committed at this moment: each run's whole record by its id."""
    file = folder / "hudsim.db"
    if not file.exists():
        return {}
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone() is None:
            return {}
        return {values[0]: str(values[-1]) for values in db.execute("SELECT * FROM runs")}


def left_of(pid: int) -> list[str]:
    """Processes, mounts, folders and control groups of a driver's workspaces."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/{pid}-" in line]
    folders = [str(folder) for folder in state_folder().glob(f"*{pid}-*")]
    groups = [str(f) for top in Controllers.found().folders.values() for f in top.glob(f"hudsim-{pid}-*")]
    return [*processes_of(pid), *mounts, *folders, *groups]


def until(fact: object, limit_s: float) -> None:
    """Wait for a fact."""
    assert callable(fact)
    end_s = time.monotonic() + limit_s
    while not fact():
        assert time.monotonic() < end_s, f"not within {limit_s:g} s"
        time.sleep(0.01)
