"""Tasksets: from files and back, which tasks, and what is refused before anything runs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hudsim.environment import Environment, Task
from hudsim.errors import UnknownName, UsageError
from hudsim.eval import Job, LocalRuntime, Run, Taskset
from tests.asyncrun import on_loop

SOURCE = """
from hudsim import Environment, Taskset
from words import WORDS

env = Environment("letters", settings={"bonus": 0.0})

@env.template()
async def count(word: str, letter: str = "r"):
    answer = yield f"{letter} in {word}?"
    yield float(answer == str(word.count(letter))) + env.settings["bonus"]

tasks = [count(word) for word in WORDS]
_hidden = count("hidden")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "words.py").write_text('WORDS = ["strawberry", "pear"]\n')
    (tmp_path / "env.py").write_text(SOURCE)
    return tmp_path / "env.py"


async def three(run: Run) -> None:
    run.trace.content = "3"


def letters() -> Environment:
    env = Environment("letters")

    @env.template()
    async def count(word: str) -> AsyncGenerator[Any, Any]:
        answer = yield f"r in {word}?"
        yield float(answer == str(word.count("r")))

    return env


def tasks(*words: str) -> Taskset:
    env = letters()
    return Taskset("letters", [env.templates["count"](word=word) for word in words])


def test_a_python_file_gives_its_tasks(source: Path) -> None:
    taskset = Taskset.from_file(source)
    assert taskset.name == "letters"
    assert [task.args["word"] for task in taskset] == ["strawberry", "pear"]


def test_a_folder_gives_the_tasks_of_its_files(source: Path) -> None:
    (source.parent / "more.py").write_text("from env import count\nextra = count('rr')\n")
    (source.parent / "test_env.py").write_text("raise RuntimeError('a test is no source')\n")
    assert len(Taskset.from_file(source.parent)) == 3


def test_two_folders_with_files_of_the_same_names_are_not_mixed_up(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "words.py").write_text(f'WORDS = ["{name}"]\n')
        (folder / "env.py").write_text(SOURCE)
    words = [[task.args["word"] for task in Taskset.from_file(tmp_path / name)] for name in ("one", "two", "one")]
    assert words == [["one"], ["two"], ["one"]]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_rows_are_read_back_as_they_were_written(suffix: str, tmp_path: Path) -> None:
    before = tasks("strawberry", "pear")
    written = before.to_file(tmp_path / "deep" / f"rows{suffix}")
    after = Taskset.from_file(written)
    assert after.name == "rows"
    assert [task.to_row() for task in after] == [task.to_row() for task in before]
    assert all(task.home is None for task in after)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"env": "e", "id": "t", "arg": {}}, r"no key of .*rows\.jsonl:2 'arg'; did you mean 'args'"),
        ({"env": "e"}, r"rows\.jsonl:2: id: "),
        ({"env": "e", "id": "t", "args": [1]}, r"rows\.jsonl:2: args: got \[1\]"),
        ([1], r"rows\.jsonl:2: got a list"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line_and_key(row: Any, words: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"env": "e", "id": "t"}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(UsageError, match=words):
        Taskset.from_file(file)


@pytest.mark.parametrize(("name", "words"), [("rows.json", "3"), ("rows.jsonl", "{"), ("rows.yaml", "a: 1")])
def test_a_file_that_holds_no_tasks_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(words)
    with pytest.raises(UsageError, match=name):
        Taskset.from_file(tmp_path / name)


def test_a_source_that_raises_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text("import nowhere_at_all\n")
    with pytest.raises(UsageError, match="cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"):
        Taskset.from_file(tmp_path / "env.py")


def test_two_tasks_of_one_slug_are_refused() -> None:
    with pytest.raises(UsageError, match="two tasks are called same"):
        Taskset("t", [Task(env="a", id="x", slug="same"), Task(env="b", id="x", slug="same")])


def test_filter_and_exclude_keep_the_order_and_refuse_names_that_are_not_there() -> None:
    taskset = tasks("a", "b", "c")
    first, second, third = taskset.tasks
    assert list(taskset.filter([third, first]).tasks) == [first, third]
    assert list(taskset.exclude([first, third]).tasks) == [second]
    with pytest.raises(UnknownName, match="no task in letters 'nosuch'"):
        taskset.filter(["nosuch"])
    with pytest.raises(UnknownName):
        taskset.exclude(["nosuch"])


@on_loop
async def test_tasks_of_a_live_environment_need_no_runtime() -> None:
    job = await tasks("strawberry", "pear").run(three, group=3, runs=None)
    assert [run.reward for run in job.runs] == [1.0] * 3 + [0.0] * 3
    assert [run.index for run in job.runs] == [0, 1, 2] * 2
    assert job.reward == 0.5


@on_loop
async def test_a_task_runs_alone() -> None:
    task = next(iter(tasks("strawberry")))
    job = await task.run(three, group=2, runs=None)
    assert [run.reward for run in job.runs] == [1.0, 1.0]


@on_loop
async def test_tasks_from_a_file_need_a_runtime() -> None:
    with pytest.raises(UsageError, match=r"came from a file.*pass runtime="):
        await Taskset("t", [Task(env="letters", id="count")]).run(three, runs=None)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Task(env="leters", id="count"), "no environment in .* 'leters'; did you mean 'letters'"),
        (Task(env="letters", id="cuont"), "no task in environment letters 'cuont'; did you mean 'count'"),
        (Task(env="letters", id="count", args={"wrod": "x"}), "no argument of count 'wrod'"),
        (Task(env="letters", id="count", args={}), "argument word is missing"),
    ],
)
@on_loop
async def test_a_row_that_its_environment_does_not_know_is_refused_before_anything_runs(
    row: Task, words: str, source: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        await Taskset("t", [row]).run(three, runtime=LocalRuntime(source), runs=None)


@on_loop
async def test_settings_reach_the_environment_and_unknown_ones_are_refused(source: Path) -> None:
    taskset = Taskset.from_file(source)
    job = await taskset.run(three, runtime=LocalRuntime(source, settings={"bonus": 0.5}), runs=None)
    assert [run.reward for run in job.runs] == [1.5, 0.5]
    with pytest.raises(UnknownName, match="no setting of environment letters 'bonsu'; did you mean 'bonus'"):
        await taskset.run(three, runtime=LocalRuntime(source, settings={"bonsu": 1}), runs=None)


@pytest.mark.parametrize("count", [0, -1])
@on_loop
async def test_a_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match="max_concurrent"):
        await tasks("a").run(three, max_concurrent=count, runs=None)
    with pytest.raises(UsageError, match="group"):
        await tasks("a").run(three, group=count, runs=None)


@on_loop
async def test_no_more_runs_than_asked_for_are_under_way() -> None:
    live = most = 0

    def count(event: str, run: Run) -> None:
        nonlocal live, most
        live += 1 if event == "started" else -1
        most = max(most, live)

    await tasks("a", "b").run(three, group=8, max_concurrent=3, runs=None, on_event=count)
    assert (live, most) == (0, 3)


@on_loop
async def test_a_job_takes_several_calls_and_keeps_them_in_order(tmp_path: Path) -> None:
    async with await Job.start("training", group=2, runs=tmp_path) as job:
        for _ in range(3):
            await tasks("strawberry").run(three, job=job)
        assert len(job.runs) == 6
    kept = await Job.load(job.id, runs=tmp_path)
    assert [run.id for run in kept.runs] == [run.id for run in job.runs]
