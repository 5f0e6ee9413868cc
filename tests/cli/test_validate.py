"""``hudsim validate``."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hudsim.testing import ATTACKS
from tests.cli.command import HUDSIM, document, hudsim, started, told
from tests.cli.halves import TESTS, write_halves


def said(*words: str, cwd: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the sections by the first word of what they ask."""
    done = hudsim("validate", *words, "--json", cwd=cwd)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"] == (done.returncode == 0)
    return done.returncode, {section["what"].split()[0]: section for section in told["sections"]}


def test_an_environment_of_words_is_well() -> None:
    told = document("validate", "letters", "--times", "2")
    assert told["environment"] == "letters"
    assert [len(section["findings"]) for section in told["sections"]] == [12, 12, 0, 0]
    done = hudsim("validate", "letters", "--task", "rhythm-e")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "✓ nothing is paid for nothing: 1 of 1 task",
        "✓ the reference is worth 1.0, 10 times in 10: 1 of 1 task",
        "✓ every hidden test can be run as it is to be: no test that cannot",
        "✓ cheats are paid nothing, and honest mess costs nothing: no attacks to try",
        "all is well",
    ]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_coding_task_is_well_and_each_attack_is_tried(tmp_path: Path) -> None:
    write_halves(tmp_path / "halves")
    words = ("halves/env.py", "--times", "2", "--attacks", "quick", "--max-concurrent", "2")
    command = [*HUDSIM, "validate", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all is well"
    tried = sum(1 + bool(attack.right) for attack in ATTACKS if not attack.slow)
    assert f"and honest mess costs nothing: {tried} of {tried} attacks\n" in done.stdout


GRADES = """
import asyncio, itertools
from hudsim import Environment, Taskset

env = Environment("grades")
times = itertools.count()

@env.template()
async def {name}():
    answer = yield "go"
    {body}

{reference}

tasks = Taskset("grades", [{name}()])
"""


def write_grades(folder: Path, name: str, body: str, *, reference: bool = True) -> Path:
    declared = f"@{name}.reference\ndef right():\n    return 'yes'" if reference else ""
    (folder / "env.py").write_text(GRADES.format(name=name, body=body, reference=declared))
    return folder


def test_a_reward_for_nothing_is_wrong(tmp_path: Path) -> None:
    code, sections = said("env.py", "--times", "1", cwd=write_grades(tmp_path, "generous", "yield 1.0"))
    assert code == 1
    (finding,) = sections["nothing"]["findings"]
    assert (finding["got"], finding["expected"]) == ("passed, reward 1", "reward 0 for an agent that does nothing")


def test_a_reference_that_fails_now_and_then_has_its_flake_rate(tmp_path: Path) -> None:
    body = "yield float(answer == 'yes' and next(times) % 4 > 0)"
    code, sections = said("env.py", "--times", "8", "--max-concurrent", "1", cwd=write_grades(tmp_path, "flaky", body))
    assert code == 1
    (finding,) = sections["the"]["findings"]
    assert finding["got"].startswith("1.0 in 6 of 8 (flake rate 25%): failed, reward 0")


def test_a_grader_that_hangs_is_an_error_and_no_0(tmp_path: Path) -> None:
    body = "await asyncio.sleep(600)\n    yield 0.0"
    words = ("env.py", "--times", "1", "--grade-timeout", "0.3")
    code, sections = said(*words, cwd=write_grades(tmp_path, "hangs", body))
    assert code == 1
    for section in ("nothing", "the"):
        (finding,) = sections[section]["findings"]
        assert finding["severity"] == "error"
        assert "grade_timeout" in finding["got"]


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    write_grades(tmp_path, "hangs", "open('asked', 'w').close()\n    await asyncio.sleep(600)\n    yield 0.0")
    with started("validate", "env.py", cwd=tmp_path) as process:
        while not (tmp_path / "asked").exists():
            assert process.poll() is None
            time.sleep(0.05)
        code, _, errors = told(process, signal.SIGINT)
    assert code == 130
    assert errors.splitlines()[-1] == "interrupted"
    assert "Traceback" not in errors


def test_a_grader_that_raises_is_an_error(tmp_path: Path) -> None:
    code, sections = said(
        "env.py", "--times", "1", cwd=write_grades(tmp_path, "raises", "raise OSError('no disk')\n    yield 0")
    )
    assert code == 1
    (finding,) = sections["nothing"]["findings"]
    assert finding["got"].startswith("grader_error, reward none: ")
    assert "no disk" in finding["got"]


def test_a_task_without_a_reference_is_named_and_not_wrong(tmp_path: Path) -> None:
    write_grades(tmp_path, "open_ended", "yield 0.0", reference=False)
    code, sections = said("env.py", "--times", "1", cwd=tmp_path)
    assert code == 0
    (finding,) = sections["the"]["findings"]
    assert finding["severity"] == "warning"
    assert "@open_ended.reference" in finding["got"]


def test_each_test_that_cannot_cross_is_named_with_its_reason_and_what_to_do(tmp_path: Path) -> None:
    folder = write_halves(tmp_path / "halves")
    across = "def test_halves_are_equal():\n    assert sums.Half() == sums.Half()\n"
    (folder / "hidden" / "test_sums.py").write_text(TESTS + "\n" + across)
    solution = (
        "class Half:\\n    def __eq__(self, other):\\n        return True\\n\\ndef half(n):\\n    return n // 2\\n"
    )
    (folder / "env.py").write_text(
        (folder / "env.py").read_text().replace("def half(n):\\n    return n // 2\\n", solution)
    )
    code, sections = said("halves/env.py", "--times", "2", "--attacks", "none", cwd=tmp_path)
    assert code == 1
    (finding,) = sections["every"]["findings"]
    assert finding["what"].endswith("test_sums.py::test_halves_are_equal")
    assert finding["got"].startswith("opaque: ")
    assert finding["expected"] == 'comparable=(…) for its class, or process={"test_sums.py": "same"}'
    (finding,) = sections["the"]["findings"]
    assert finding["got"].endswith("what failed: test_sums.py::test_halves_are_equal (2)")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("letters", "--attacks", "som"), "There are: all, none, quick"),
        (("letters", "--task", "banan-a"), "did you mean 'banana-a'?"),
        (("leters",), "did you mean 'letters'?"),
        (("letters", "--set", "x=1"), "no setting of environment letters 'x'"),
    ],
)
def test_a_mistake_is_said_in_words(words: tuple[str, ...], said: str) -> None:
    done = hudsim("validate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
