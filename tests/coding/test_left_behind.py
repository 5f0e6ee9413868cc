"""Nothing is left of workspaces whose owner is killed, at whatever moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits
from hudsim.coding.cgroups import Controllers
from hudsim.coding.place import state_folder
from hudsim.coding.sweep import clean, live
from tests.asyncrun import on_loop

HERE = Path(__file__).parents[2]


def processes_of(pid: int) -> list[str]:
    """What runs in that owner's control groups, or was started by it, or carries its mark."""
    found = []
    in_groups = set()
    for folder in Controllers.found().folders.values():
        for procs in folder.glob(f"hudsim-{pid}-*/cgroup.procs"):
            with contextlib.suppress(OSError):  # it is just being removed, which is only done to an empty one
                in_groups |= set(procs.read_text().split())
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            marked = f"hudsim-{os.geteuid()}/{pid}-" in command
            if state != "Z" and (marked or entry.name in in_groups):
                found.append(f"{entry.name} {command:.100}")
    return found


def killed_after(seconds: float, *, word: str = "ready", count: int = 4) -> int:
    """An owner that was killed that long after it said ``word``; its process id."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.coding.owner", str(count)], stdout=subprocess.PIPE, cwd=HERE, text=True
    ) as owner:
        assert owner.stdout is not None
        while (line := owner.stdout.readline()) and line.strip() != word:
            pass
        assert line, owner.wait()
        time.sleep(seconds)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    return owner.pid


def assert_nothing_is_left_of(pid: int) -> None:
    until_s = time.monotonic() + 10.0
    while (left := processes_of(pid)) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not left
    assert f"{pid}-" not in Path("/proc/self/mountinfo").read_text()
    clean()
    assert not list(state_folder().glob(f"*{pid}-*"))
    for folder in Controllers.found().folders.values():
        assert not list(folder.glob(f"hudsim-{pid}-*"))


@pytest.mark.slow
@pytest.mark.parametrize("n", range(8))
def test_an_owner_killed_at_any_moment_leaves_nothing(n: int) -> None:
    assert_nothing_is_left_of(killed_after(random.random() * 0.6))


def test_an_owner_killed_while_its_workspaces_run_leaves_nothing() -> None:
    assert_nothing_is_left_of(killed_after(0.0, word="used", count=2))


@on_loop
async def test_the_living_are_not_swept() -> None:
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        await box.run("touch file")
        own = [owned for owned in live() if owned.pid == os.getpid()]
        assert [owned.pid for owned in own] == [os.getpid()]
        assert box.folder.name in own[0].rooms
        assert "python" in own[0].command
        clean()
        assert (await box.run("cat file")).code == 0
    assert not [owned for owned in live() if owned.pid == os.getpid() and box.folder.name in owned.rooms]
