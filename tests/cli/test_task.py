from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import document, hudsim, serving
from tests.cli.sums import write_sums


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sums(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(str(folder)) as (_, server):
        yield server["url"]


def test_list_says_what_each_task_takes_and_keeps_the_reference(folder: Path) -> None:
    said = document("task", "list", "env.py", cwd=folder)
    assert said["environment"] == "sums"
    (task,) = said["tasks"]
    assert (task["id"], task["description"], task["reference"]) == ("add", "Add two numbers.", True)
    assert task["args"]["properties"].keys() == {"a", "b"}
    assert task["args"]["required"] == ["a"]
    done = hudsim("task", "list", "env.py", cwd=folder)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["sums"],
        ["add", "Add", "two", "numbers."],
        ["a", "integer", "required"],
        ["b", "integer", "default", "1"],
    ]


def test_list_of_a_server_is_the_same(folder: Path, url: str) -> None:
    assert document("task", "list", url) == document("task", "list", str(folder))


def test_list_of_a_name(folder: Path) -> None:
    assert document("task", "list", "letters")["environment"] == "letters"
    refused = hudsim("task", "list", "leters")
    assert refused.returncode == 2
    assert "did you mean 'letters'?" in refused.stderr


def test_a_task_that_was_started_is_graded_by_another_command(url: str) -> None:
    started = [json.loads(hudsim("task", "start", url, "add", "--set", f"a={a}").stdout) for a in (1, 20)]
    assert [start["prompt"] for start in started] == ["What is 1 + 1?", "What is 20 + 1?"]
    for start, answer, score in zip(started, ("2", "300"), (1.0, 0.0), strict=True):
        done = hudsim("task", "grade", url, "--session", start["session"], "--answer", answer)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["score"] == score
    again = hudsim("task", "grade", url, "--session", started[0]["session"], "--answer", "2")
    assert again.returncode == 1
    assert started[0]["session"] in again.stderr


def test_without_an_answer_it_is_graded_as_none(url: str) -> None:
    session = json.loads(hudsim("task", "start", url, "add", "--set", "a=1").stdout)["session"]
    assert json.loads(hudsim("task", "grade", url, "--session", session).stdout)["score"] == 0.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", "URL", "ad"], "did you mean 'add'?"),
        (["start", "URL", "add"], "argument a is missing"),
        (["start", "URL", "add", "--set", "a=x"], "argument a: got 'x'"),
        (["start", "URL", "add", "--set", "c=1"], "no argument of add 'c'"),
        (["start", "env.py", "add"], "expected ws:// or wss://"),
        (["grade", "URL", "--session", "0"], "no session '0' here"),
        (["list", "ws://127.0.0.1:1/"], "connection refused"),
    ],
)
def test_a_mistake_is_said_in_words(url: str, words: list[str], said: str) -> None:
    done = hudsim("task", *(url if word == "URL" else word for word in words))
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
