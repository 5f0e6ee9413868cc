from __future__ import annotations

import subprocess
import sys

import pytest

import hudsim as package
from hudsim.cli.main import app
from tests.cli.command import hudsim

HEAVY = ("av", "cv2", "gymnasium", "mujoco", "numpy", "pydantic", "torch")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hudsim.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    for command in ("run", "serve", "check", "list", "contract", "diff", "bench"):
        assert f"\n  {command} " in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_is_the_packages() -> None:
    assert hudsim("--version").stdout == f"hudsim {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "Did you mean 'run'"),
        (["run", "test-card"], "Missing option '--policy'"),
        (["run", "test-card", "-p", "hold", "--mode", "fast"], "'lockstep', 'paced', 'realtime'"),
        (["run", "arm-lft", "-p", "hold"], "did you mean 'arm-lift'?"),
        (["run", "test-card", "-p", "holt"], "did you mean 'hold'?"),
        (["run", "test-card", "-p", "hold", "--set", "widht=64"], "did you mean 'width'?"),
        (["run", "test-card", "-p", "hold", "--set", "width"], "expected KEY=VALUE"),
        (["run", "test-card", "-p", "hold", "--set", "width=64", "--set", "width=32"], "width is set twice"),
        (["run", "test-card", "-p", "hold", "--policy-set", "chnk=2"], "did you mean 'chunk'?"),
        (["run", "test-card", "-p", "hold", "--chunks", "recedin"], "did you mean 'receding'?"),
        (["run", "test-card", "-p", "hold", "--out", "/dev/null"], "nothing can be kept in /dev/null"),
        (["run", "test-card", "-p", "scripted"], "cannot be asked for privileged features"),
        (["run", "ws://127.0.0.1:1/robot/robot", "-p", "hold", "--rate", "20"], "--rate is the server's"),
        (["serve", "ws://127.0.0.1:1/robot/robot"], "is served already"),
        (["contract", "show", "no.such.module:World"], "no module 'no'"),
        (["check", "mjcf:nowhere.xml"], "there is no file nowhere.xml"),
        (["bench", "latancy"], "did you mean 'latency'?"),
        (["diff", "nowhere", "neither"], "no run in nowhere"),
    ],
)
def test_a_mistake_is_said_in_words_and_ends_with_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit) as ended:
        app(words, prog_name="hudsim")
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    assert said in printed.err


def test_debug_shows_the_traceback_of_a_mistake() -> None:
    done = hudsim("--debug", "run", "arm-lft", "-p", "hold")
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "UnknownName" in done.stderr


def test_work_that_failed_ends_with_1() -> None:
    done = hudsim("run", "ws://127.0.0.1:1/robot/robot", "-p", "hold")
    assert done.returncode == 1
    assert "connection refused" in done.stderr
    assert "Traceback" not in done.stderr
