from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

from hudsim.graders.crossing import boot

RUNNER = """
import runpy, socket, sys
import pytest
load = runpy.run_path(sys.argv[1])["load"]
plugins, sides = load("plugin", "tests_side")
crossing = sides.attach(socket.socket(fileno=int(sys.argv[2])), ["calc"], timeout_s=20.0)
assert not [name for name in sys.modules if name.partition(".")[0] == "hudsim"]

class Outcomes:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            print("RESULT", report.nodeid.partition("::")[2], report.outcome, file=out)

out = open(sys.argv[4], "w")
plugin = plugins.Plugin(crossing)
pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[3]], plugins=[plugin, Outcomes()])
for test, reason in plugin.reasons.items():
    print("REASON", test.partition("::")[2], reason.partition(":")[0], file=out)
crossing.close()
"""

SOLUTION = """
class Yes:
    def __eq__(self, other): return True

def make(): return Yes()
def add(a, b): return a + b
def shout(): print("5 passed")
async def later(): pass
if __name__ == "__main__":
    print("ran")
"""

TESTS = """
import calc, contextlib, pytest

def test_right(): assert calc.add(1, 2) == 3
def test_wrong(): assert calc.add(1, 2) == 4
def test_caught():
    try:
        assert calc.make() == 1
    except Exception:
        pass
def test_raises_anything():
    with pytest.raises(Exception):
        calc.later()
def test_program(solution): assert solution.run(["calc"]).stdout == "ran\\n"
def test_prints(capsys):
    calc.shout()
    assert capsys.readouterr().out == "5 passed\\n"
"""


def test_a_test_with_trouble_has_failed_whatever_it_caught(tmp_path: Path) -> None:
    (tmp_path / "solution").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "solution" / "calc.py").write_text(SOLUTION)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    ours, theirs = socket.socketpair()
    path = str(boot.__file__)
    with ours, theirs:
        served = subprocess.Popen(
            [sys.executable, "-I", path, str(theirs.fileno()), str(tmp_path / "solution")],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        command = [
            sys.executable,
            "-c",
            RUNNER,
            path,
            str(ours.fileno()),
            str(tmp_path / "tests"),
            str(tmp_path / "out"),
        ]
        done = subprocess.run(
            command,
            pass_fds=[ours.fileno()],
            capture_output=True,
            text=True,
            timeout=50,
            env=dict(os.environ),
            check=False,
        )
    assert served.wait(10) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    results = {line.split()[1]: line.split()[2] for line in lines if line.startswith("RESULT")}
    reasons = {line.split()[1]: line.split()[2] for line in lines if line.startswith("REASON")}
    assert results == {
        "test_right": "passed",
        "test_wrong": "failed",
        "test_caught": "failed",
        "test_raises_anything": "failed",
        "test_program": "passed",
        "test_prints": "passed",
    }, done.stderr
    assert reasons == {"test_caught": "opaque", "test_raises_anything": "async"}


def test_loading_leaves_the_interpreters_own_hudsim_alone() -> None:
    import hudsim

    loaded = runpy.run_path(str(boot.__file__))["load"]("codec")[0]
    assert sys.modules["hudsim"] is hudsim
    assert loaded is not sys.modules.get("hudsim.graders.crossing.codec")
