"""``JobLock``: one holder at a time, whoever comes and goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hudsim.errors import StoreError
from hudsim.eval.joblock import JobLock
from tests.eval.keeping import names


def test_of_many_that_come_and_go_one_holds_it_at_a_time(tmp_path: Path) -> None:
    inside, most, held = [0], [0], [0]
    counting = threading.Lock()

    def come_and_go() -> None:
        for _ in range(200):
            try:
                lock = JobLock(tmp_path / "a.lock", "a")
            except StoreError:
                continue
            with counting:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                held[0] += 1
            with counting:
                inside[0] -= 1
            lock.release()

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert held[0] >= 8
    assert names(tmp_path) == []


HOLDS = """
import sys, time
from pathlib import Path
from hudsim.eval.joblock import JobLock
lock = JobLock(Path(sys.argv[1]), "a")
print("held", flush=True)
time.sleep(60)
"""


def test_a_holder_that_is_killed_holds_nothing_any_more(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"job a is being worked on by process {child.pid}: wait for its end"):
            JobLock(path, "a")
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=20)
    lock = JobLock(path, "a")
    assert path.read_text() == f"{os.getpid()}\n"
    lock.release()
    lock.release()
    assert names(tmp_path) == []


def test_what_is_released_after_its_folder_was_made_anew_leaves_the_next_holder_s_file(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "a.lock"
    first = JobLock(path, "a")
    path.parent.rename(tmp_path / "away")
    second = JobLock(path, "a")
    first.release()
    with pytest.raises(StoreError, match="is being worked on"):
        JobLock(path, "a")
    second.release()
    assert names(path.parent) == []
