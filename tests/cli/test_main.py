from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hudsim as package
from hudsim.cli.main import app
from tests.cli.command import hudsim

COMMANDS = ("run", "eval", "jobs", "show", "serve", "task", "list", "init", "check", "contract", "diff", "bench")
HEAVY = ("av", "cv2", "gymnasium", "mujoco", "numpy", "pydantic", "torch")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hudsim.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    for command in (
        "run",
        "eval",
        "jobs",
        "show",
        "serve",
        "task",
        "list",
        "init",
        "check",
        "contract",
        "diff",
        "bench",
    ):
        assert f"\n  {command} " in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_interrupt_during_the_imports_is_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    done = hudsim("list", environment={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_version_is_the_packages() -> None:
    assert hudsim("--version").stdout == f"hudsim {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "Did you mean 'run'"),
        (["run", "test-card"], "Missing option '--policy'"),
        (["run", "test-card", "-p", "hold", "--mode", "fast"],
         "Invalid value for '--mode': 'fast' is not one of 'lockstep', 'paced', 'realtime'."),
        (["run", "ball.py", "-p", "hold"], "as in ball.py:Class"),
        (["run", "test-card", "-p", "mine.py"], "as in mine.py:Class"),
        (["run", "gym:genv.py", "-p", "hold"], "as in gym:genv.py:factory"),
        (["run", "http://127.0.0.1:1/robot", "-p", "hold"], "expected ws:// or wss://"),
        (["run", "test-card", "-p", "hold", "--adapter", "mine.py"], "as in mine.py:Class"),
        (["run", "pendulum", "-p", "hold", "--no-cameras", "--set", "max_ticks=foo"],
         'pendulum cannot be made with max_ticks="foo": TypeError: '),
        (["serve", "pendulum", "--no-cameras", "--set", "max_ticks=foo"], 'with max_ticks="foo": TypeError: '),
        (["contract", "show", "pendulum", "--no-cameras", "--set", "max_ticks=foo"], 'with max_ticks="foo": TypeErr'),
        (["run", "gym:HalfCheetah-v5", "-p", "hold", "--rate", "50"], "its own rate 20 Hz"),
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
        (["serve", "test-card", "--reveal-references"], "--reveal-references is for an environment, and test-card"),
        (["serve", "letters", "--num-envs", "2"], "--num-envs is a world's, and letters is an environment"),
        (["serve", "letters", "--set", "x=1"], "no setting of environment letters 'x'"),
        (["serve", "nowhere.py"], "nowhere.py"),
        (["task", "list", "leters"], "did you mean 'letters'?"),
        (["eval", "letters", "nop"], "did you mean 'noop'?"),
        (["eval", "leters", "noop"], "did you mean 'letters'?"),
        (["init", "x", "-t", "blnk"], "did you mean 'blank'?"),
        (["contract", "show", "no.such.module:World"], "no module 'no'"),
        (["check", "mjcf:nowhere.xml"], "there is no file nowhere.xml"),
        (["bench", "latancy"], "did you mean 'latency'?"),
        (["diff", "nowhere", "neither"], "no run in nowhere: there is no such file or folder"),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("words", [("--debug", "run"), ("run", "--debug")])
def test_debug_shows_the_traceback_of_a_mistake(words: tuple[str, ...]) -> None:
    done = hudsim(*words, "arm-lft", "-p", "hold")
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "UnknownName" in done.stderr


def test_work_that_failed_ends_with_1() -> None:
    done = hudsim("run", "ws://127.0.0.1:1/robot/robot", "-p", "hold")
    assert done.returncode == 1
    assert "connection refused" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [("--rate", "inf"), ("--rate", "1e9"), ("--policy-rate", "inf"), ("--watchdog", "nan")]
)
def test_a_number_that_cannot_be_meant_is_a_usage_error(words: tuple[str, str]) -> None:
    done = hudsim("run", "test-card", "-p", "hold", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
