"""Python objects by the names that people and processes give them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudsim.errors import UnknownName, UsageError
from hudsim.robot.spec import WorldSpec
from hudsim.target import load_source, load_target, target_of


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in files.items():
        (folder / f"{name}.py").write_text(words)
    return folder


def test_a_file_is_loaded_once_and_anew_where_that_is_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path, mine="class A: ...\n") / "mine.py"
    (once,) = load_source(file)
    (twice,) = load_source(file)
    (anew,) = load_source(file, fresh=True)
    assert once is twice
    assert anew is not once
    assert anew.A is not once.A


def test_a_file_finds_those_beside_it(tmp_path: Path) -> None:
    folder = write(tmp_path, one="from other_of_one import X\n", other_of_one="X = 3\n")
    assert load_target(f"{folder / 'one.py'}:X") == 3


def test_a_folder_is_all_of_its_files_but_tests_and_set_up(tmp_path: Path) -> None:
    boom = "raise RuntimeError('not a source')\n"
    folder = write(tmp_path, a_part="", b_part="", test_a=boom, conftest=boom, setup=boom, _hidden=boom)
    assert [Path(module.__file__ or "").stem for module in load_source(folder)] == ["a_part", "b_part"]


def test_a_file_that_bears_a_librarys_name_does_not_take_its_place(tmp_path: Path) -> None:
    file = write(tmp_path, json="class Mine: ...\n") / "json.py"
    mine = load_target(f"{file}:Mine")
    import json

    assert hasattr(json, "dumps")
    assert target_of(mine) == f"{file}:Mine"


def test_a_file_in_a_package_is_known_by_the_packages_name(tmp_path: Path) -> None:
    write(tmp_path / "pack_of_one", __init__="", mine="from pack_of_one.other import X\n", other="X = 4\n")
    assert load_target(f"{tmp_path / 'pack_of_one' / 'mine.py'}:X") == 4


@pytest.mark.parametrize("package", [False, True])
def test_another_process_finds_a_class_by_its_target(package: bool, tmp_path: Path) -> None:
    files = {"world_of_two": "class W: ...\n", "env_of_two": "from world_of_two import W\n"}
    if package:
        files = {"__init__": "", "world": "class W: ...\n", "env_of_two": "from pack_of_two.world import W\n"}
    folder = write(tmp_path / "pack_of_two", **files)
    target = target_of(load_target(f"{folder / 'env_of_two.py'}:W"))
    code = f"from hudsim.target import load_target; print(load_target({target!r}).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout == "W\n", done.stderr


def test_a_class_of_an_installed_package_goes_by_its_module() -> None:
    assert target_of(WorldSpec) == "hudsim.robot.spec:WorldSpec"


def test_loading_a_bundled_file_leaves_the_path_alone() -> None:
    import hudsim.bridges.testcard as card

    before = list(sys.path)
    assert card.__file__ is not None
    (loaded,) = load_source(card.__file__)
    assert loaded.__name__ == "hudsim.bridges.testcard"
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "words"),
    [("nowhere.py", "no file"), ("empty", "no Python file"), ("notes.txt", "no Python file")],
)
def test_what_is_no_source_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=words):
        load_source(tmp_path / name)


def test_what_is_not_in_a_file_is_refused_with_what_is(tmp_path: Path) -> None:
    file = write(tmp_path, mine="class Arm: ...\n") / "mine.py"
    with pytest.raises(UnknownName, match="did you mean 'Arm'"):
        load_target(f"{file}:Amr")


def test_an_import_that_raises_is_refused_with_its_traceback(tmp_path: Path) -> None:
    file = write(tmp_path, mine="1 / 0\n") / "mine.py"
    with pytest.raises(UsageError, match="cannot be imported: ZeroDivisionError") as refused:
        load_source(file)
    assert "1 / 0" in refused.value.data["traceback"]
