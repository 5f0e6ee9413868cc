"""``Asked``: processes that answer, that do not, and that are interrupted."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import pytest

from hudsim.bench.shared.asked import Asked
from hudsim.errors import HudsimError
from tests.cli.command import alive

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
DEAF = "import time, sys\nsys.stdin.readline(); time.sleep(60)"
CHILD = """
import json, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
sys.stdin.readline()
print(json.dumps({"pid": child.pid}), flush=True)
sys.stdin.read()
"""


def test_it_answers_line_by_line() -> None:
    with Asked("echo", [sys.executable, "-c", ECHO]) as asked:
        assert [asked.ask({"n": n}) for n in range(3)] == [{"n": n} for n in range(3)]


def test_one_that_does_not_answer_in_time_is_an_error_that_names_it() -> None:
    with Asked("deaf", [sys.executable, "-c", DEAF]) as asked, pytest.raises(HudsimError, match=r"deaf: .* 0\.2 s"):
        asked.ask({}, within_s=0.2)


def test_one_that_has_ended_is_an_error() -> None:
    with Asked("gone", [sys.executable, "-c", ""]) as asked, pytest.raises(HudsimError, match="gone: its process"):
        asked.ask({})


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_an_interrupt_takes_along_what_it_started() -> None:
    pid = 0
    with contextlib.suppress(KeyboardInterrupt), Asked("parent", [sys.executable, "-c", CHILD]) as asked:
        pid = asked.ask({})["pid"]
        assert alive(pid)
        raise KeyboardInterrupt
    deadline_s = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not alive(pid)
