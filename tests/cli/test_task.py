from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import document, hudsim, inside, serving
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
    (template,) = said["templates"]
    assert (template["id"], template["description"], template["reference"]) == ("add", "Add two numbers.", True)
    assert template["args"]["properties"].keys() == {"a", "b"}
    assert template["args"]["required"] == ["a"]
    assert said["tasks"][0] == {"env": "sums", "id": "add", "args": {"a": 1, "b": 2}, "slug": "1+2"}
    done = hudsim("task", "list", "env.py", cwd=folder)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["sums"],
        ["add", "Add", "two", "numbers."],
        ["a", "integer", "required"],
        ["b", "integer", "default", "1"],
        [],
        ["3", "tasks", "hudsim", "eval", "…", "--task", "SLUG,…", "runs", "some"],
        ["1+2", "add", "a=1,", "b=2"],
        ["2+3", "add", "a=2,", "b=3"],
        ["3+4", "add", "a=3,", "b=4"],
    ]


def test_list_of_a_server_is_the_same(folder: Path, url: str) -> None:
    assert document("task", "list", url) == {**document("task", "list", str(folder)), "tasks": None}
    assert "tasks" not in hudsim("task", "list", url).stdout


def test_list_of_rows_is_of_the_environment_that_they_run_in(folder: Path) -> None:
    row = {"env": "sums", "id": "add", "args": {"a": 5}, "slug": "five"}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    said = document("task", "list", "rows.jsonl", cwd=folder)
    assert [template["id"] for template in said["templates"]] == ["add"]
    assert [task["slug"] for task in said["tasks"]] == ["five"]


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


def test_who_works_on_a_server_is_listed_and_can_be_ended(url: str) -> None:
    assert inside("task", "sessions", url).stdout == "no sessions\n"
    session = json.loads(inside("task", "start", url, "add", "--set", "a=7").stdout)["session"]
    (told,) = document("task", "sessions", url)["sessions"]
    assert (told["session"], told["state"], told["connected"]) == (session, "started", False)
    assert (told["task"]["id"], told["task"]["args"], told["task"]["waits_for"]) == ("add", {"a": 7}, None)
    assert 0 < told["ends_in_s"] <= 3600
    line = inside("task", "sessions", url).stdout.splitlines()[1]
    for words in (session, "add(a=7)", "started", "gone, ends in"):
        assert words in line
    done = inside("task", "cancel", url, "--session", session)
    assert json.loads(done.stdout) == {"session": session, "cancelled": True}
    assert inside("task", "sessions", url).stdout == "no sessions\n"
    again = inside("task", "cancel", url, "--session", session)
    assert (again.returncode, again.stdout) == (1, "")
    assert session in again.stderr


def printed(words: str, verb: str) -> list[str]:
    """The command that was printed to go on with."""
    (line,) = (line for line in words.splitlines() if f"hudsim task {verb}" in line)
    return shlex.split(line)[1:]


def test_what_was_started_by_hand_is_worked_on_by_an_agent_and_graded_as_it_says(url: str, folder: Path) -> None:
    began = inside("task", "start", url, "add", "--set", "a=1")
    *play, agent = printed(began.stderr, "play")
    assert agent == "AGENT"
    played = inside(*play, "agents.py:Counting", "--agent-set", "answer=2", cwd=folder)
    assert played.returncode == 0, played.stderr
    said = json.loads(played.stdout)
    assert (said["end"], said["answer"]) == ("done", 2)
    graded = inside(*printed(played.stderr, "grade"))
    assert json.loads(graded.stdout)["score"] == 1.0
    again = inside(*play, "noop")
    assert (again.returncode, again.stdout) == (1, "")


def test_an_agent_that_cannot_work_on_it_leaves_it_as_it_was(url: str, folder: Path) -> None:
    session = json.loads(inside("task", "start", url, "add", "--set", "a=1").stdout)["session"]
    for agent, code, said in [
        ("oracle", 2, "served without"),
        ("hold", 2, "this agent works on"),
        ("agents.py:raises", 1, "to grade it"),
    ]:
        done = inside("task", "play", url, agent, "--session", session, cwd=folder)
        assert done.returncode == code
        assert said in done.stderr
    done = inside("task", "grade", url, "--session", session, "--answer", "2")
    assert json.loads(done.stdout)["score"] == 1.0


def test_a_robot_s_task_is_played_by_hand() -> None:
    with serving("arm-reach", "--env", "arm-reach") as (_, server):
        url = server["url"]
        began = inside("task", "start", url, "reach", "--set", "difficulty=easy")
        played = inside(*printed(began.stderr, "play")[:-1], "scripted")
        assert played.returncode == 0, played.stderr
        (step,) = json.loads(played.stdout)["steps"]
        assert step["data"]["end"] == "terminated"
        assert json.loads(inside(*printed(began.stderr, "grade")).stdout)["score"] == 1.0


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
