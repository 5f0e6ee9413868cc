from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import document, hudsim

FILES = {
    "blank": {"README.md", "env.py", "pyproject.toml", "tests/test_env.py"},
    "coding": {
        "README.md", "env.py", "pyproject.toml", "tests/test_env.py",
        "repository/README.md", "repository/pyproject.toml", "repository/tests/test_words.py", "repository/words.py",
        *(f"tasks/{name}/{file}" for name in ("slug", "wrap")
          for file in ("prompt.md", f"hidden/test_{name}.py", "solution/words.py")),
    },
    "robot": {"README.md", "env.py", "policy.py", "pyproject.toml", "tests/test_env.py", "world.py"},
}  # fmt: skip


@pytest.mark.timeout(180)
@pytest.mark.parametrize("template", FILES)
def test_a_project_works_from_the_start(tmp_path: Path, template: str) -> None:
    done = hudsim("init", "our-things", "--template", template, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("cd our-things", "hudsim eval . oracle", "pytest"):
        assert words in done.stdout
    folder = tmp_path / "our-things"
    files = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert files.keys() == FILES[template]
    assert not any("my-project" in text for text in files.values())
    assert 'name = "our-things"' in files["pyproject.toml"]

    assert document("eval", "our-things", "oracle", cwd=tmp_path)["reward"] == 1.0
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=150,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout


def test_a_robot_project_keeps_its_contract(tmp_path: Path) -> None:
    hudsim("init", "cart", "-t", "robot", cwd=tmp_path)
    assert hudsim("check", "world.py:Cart", cwd=tmp_path / "cart").stdout.endswith("all is well\n")


def test_an_empty_folder_is_taken_and_another_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert hudsim("init", "empty", cwd=tmp_path).returncode == 0
    before = (tmp_path / "empty/env.py").read_text()
    again = hudsim("init", "empty", "--template", "robot", cwd=tmp_path)
    assert again.returncode == 2
    assert "empty is there already; expected a new or empty folder" in again.stderr
    assert (tmp_path / "empty/env.py").read_text() == before
    assert not (tmp_path / "empty/world.py").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a b"], "got the project name 'a b'"),
        (["-t", "robto", "x"], "did you mean 'robot'?"),
        (["/proc/nowhere"], "/proc/nowhere/"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_is_said_in_words_and_makes_nothing(tmp_path: Path, words: list[str], said: str) -> None:
    done = hudsim("init", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
