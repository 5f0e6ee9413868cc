"""What README tells people to do is done here, word for word."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    lines = (line.partition("  #")[0].strip() for block in blocks("sh") for line in block.splitlines())
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that README shows."""
    path = tmp_path_factory.mktemp("readme")
    for block in [*blocks("python"), *blocks("python", GUIDE)]:
        name = block.splitlines()[0].removeprefix("# ")
        (path / name).write_text(block)
    return path


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("hudsim")])
def test_a_command_runs(command: str, folder: Path) -> None:
    arguments = [sys.executable, "-m", "hudsim.cli", *shlex.split(command)[1:]]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in commands():
        if command.startswith("make"):
            assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def test_the_script_drives_the_world(folder: Path) -> None:
    command = [sys.executable, "drive.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("terminated True")


@pytest.mark.parametrize(
    "command",
    [
        "-m hudsim.cli check drift.py:Drift",
        "-m hudsim.cli run drift.py:Drift --policy hold --set num_envs=3 --json",
        "-m pytest -q test_ball.py -p no:cacheprovider",
        "-c 'import by_name, own_program'",
    ],
)
def test_what_the_guide_shows_works(command: str, folder: Path) -> None:
    arguments = [sys.executable, *shlex.split(command)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_adapter_of_the_guide_binds_by_name(folder: Path) -> None:
    script = """
import numpy as np
from by_name import JointsOnly
from hudsim import Contract
contract = Contract.load({"features": {
    "observation/state": {
        "role": "observation", "dtype": "float32", "shape": [3], "names": ["joint1", "joint2", "grip"]},
    "action": {"role": "action", "dtype": "float32", "shape": [3]}}, "schema": "hudsim/1"})
adapter = JointsOnly()
adapter.bind(contract, {})
print(adapter.adapt_observation({"observation/state": np.array([1, 2, 3], np.float32)}, "go")["state"].tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[[2.0, 1.0]]", done.stderr


def test_a_world_of_ones_own_takes_thirty_lines_and_a_policy_twenty() -> None:
    sizes = {block.splitlines()[0]: len(block.splitlines()) for block in blocks("python")}
    assert sizes["# ball.py"] <= 31
    assert sizes["# damp.py"] <= 20


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target
