from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hudsim import registry
from hudsim.environment import load_environment
from hudsim.errors import UnknownName, UsageError

ENV = """
from hudsim.environment import Environment
from hudsim.eval import Taskset

{variable} = Environment({name})

@{variable}.template()
async def say(word: str):
    answer = yield f"Say {{word}}."
    yield float(answer == word)

tasks = Taskset("mine", [say(word) for word in {words}])
"""


def environment(folder: Path, name: str, file: str, variable: str = "env", words: str = "ab") -> Path:
    """A file that declares the environment ``name`` and a task for each of ``words``."""
    path = folder / f"{file}.py"
    path.write_text(ENV.format(name=name, variable=variable, words=tuple(words)))
    return path


def rows(folder: Path, *environments: str, suffix: str = ".jsonl") -> Path:
    """A data file with one task of each environment."""
    path = folder / f"some{suffix}"
    made = [{"env": name, "id": "say", "args": {"word": "a"}, "slug": f"{name}-a"} for name in environments]
    path.write_text(json.dumps(made) if suffix == ".json" else "\n".join(map(json.dumps, made)))
    return path


def slugs(source: registry.Source) -> list[str]:
    return [task.slug for task in source.taskset]


@pytest.mark.parametrize("name", registry.environments())
def test_every_name_stands_for_tasks_and_the_file_that_declares_where_they_run(name: str) -> None:
    source = registry.taskset(name)
    assert source.name == name
    assert len(source.taskset) >= 6
    for task in source.taskset:
        assert f"{name}-".startswith(f"{task.env}-")  # calc-train is of calc
        environment = load_environment(source.file, name=task.env)
        environment.find(task.id).parameters.check(task.args)
        assert environment.find(task.id).has_reference
    assert registry.environments()[name].about


def test_python_files_and_folders_hold_tasks_and_environments(tmp_path: Path) -> None:
    file = environment(tmp_path, '"one"', "first_of_two")
    environment(tmp_path, "name='two'", "second_of_two", "other", "cd")
    source = registry.taskset(str(file))
    assert (len(source.taskset), source.file) == (2, file)
    source = registry.taskset(str(tmp_path))
    assert (len(source.taskset), source.file) == (4, tmp_path)
    assert {task.env for task in source.taskset} == {"one", "two"}


def test_one_of_several_tasksets_is_named_behind_its_file(tmp_path: Path) -> None:
    file = environment(tmp_path, '"attr"', "with_attr")
    source = registry.taskset(f"{file}:tasks")
    assert (source.taskset.name, source.file) == ("mine", file)
    source = registry.taskset("hudsim.coding_envs.letters.tasks:tasks")
    assert source.file == registry.taskset("letters").file
    with pytest.raises(UsageError, match=r"with_attr\.py:env is a Environment; expected a Taskset"):
        registry.taskset(f"{file}:env")


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_data_finds_the_file_beside_it_that_declares_its_environment(tmp_path: Path, suffix: str) -> None:
    environment(tmp_path, '"other"', "a_file")
    file = environment(tmp_path, '"wanted"', "b_file", "hud")
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "explosive.py").write_text("raise SystemExit('files beside are read, not run')")
    source = registry.taskset(str(rows(tmp_path, "wanted", suffix=suffix)))
    assert (slugs(source), source.file) == (["wanted-a"], file)
    source = registry.taskset(str(rows(tmp_path, "wanted", "other", suffix=suffix)))
    assert (slugs(source), source.file) == (["wanted-a", "other-a"], tmp_path)


def test_data_of_a_bundled_environment_finds_it(tmp_path: Path) -> None:
    letters = registry.taskset("letters")
    source = registry.taskset(str(letters.taskset.to_file(tmp_path / "exported.jsonl")))
    assert (slugs(source), source.file) == (slugs(letters), letters.file)


def test_an_environment_beside_the_data_comes_before_a_bundled_one(tmp_path: Path) -> None:
    file = environment(tmp_path, '"letters"', "my_letters")
    assert registry.taskset(str(rows(tmp_path, "letters"))).file == file


def test_where_the_environments_are_may_be_said_outright(tmp_path: Path) -> None:
    data, elsewhere = rows(tmp_path, "nowhere"), tmp_path / "elsewhere.py"
    assert registry.taskset(str(data), env=elsewhere).file == elsewhere
    assert registry.taskset("letters", env=elsewhere).file == elsewhere


def test_what_is_no_source_is_refused_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "empty.jsonl").write_text("")
    environment(tmp_path, '"beside"', "declares_it")
    refused = {
        "lettres": r"no environment 'lettres'; did you mean 'letters'\? There are: FILE\.jsonl, FILE\.py, arm-lift",
        "nowhere.py": r"no file .*nowhere\.py",
        "nowhere.jsonl": r"no file .*nowhere\.jsonl",
        "ws://127.0.0.1:1/?bearer=x": r"got the scheme ws://, expected tasks; .* --runtime$",
        "hudsim.coding_envs.letters.tasks:count": "is a Template; expected a Taskset",
        f"{tmp_path}/empty.py": r"empty\.py: got no tasks",
        f"{tmp_path}/empty.jsonl": r"empty\.jsonl: got no tasks",
        str(rows(tmp_path, "gone", "beside")): r"run in gone, which no \.py file beside it declares.*--env FILE",
        str(
            rows(tmp_path, "letters", "beside", suffix=".json")
        ): r"several folders: beside \(.*, letters \(.*; run them",
    }
    for source, said in refused.items():
        with pytest.raises(UsageError) as error:
            registry.taskset(source)
        assert re.search(said, str(error.value)), str(error.value)
    with pytest.raises(UnknownName):
        registry.taskset("lettres")


def test_installed_packages_add_environments_and_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "extra_tasks-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-tasks\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[hudsim.environments]\nmine = an_installed_one:tasks\nletters = nowhere:tasks\n"
        "[hudsim.agents]\nquiet = hudsim.agents:Noop\noracle = nowhere:agent\n"
    )
    environment(tmp_path, '"mine"', "an_installed_one")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.environments()["mine"].about == "from extra-tasks 1.2"
    source = registry.taskset("mine")
    assert (len(source.taskset), source.file) == (2, tmp_path / "an_installed_one.py")
    assert len(registry.taskset("letters").taskset) > 2
    assert registry.agent("quiet") == registry.agent("noop")
    assert registry.agents()["oracle"].target.startswith("hudsim.")
