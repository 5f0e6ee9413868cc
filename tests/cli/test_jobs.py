from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import document, hudsim, inside
from tests.cli.sums import write_sums


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs: a guess twice a task, then the references."""
    folder = write_sums(tmp_path_factory.mktemp("jobs"))
    document("eval", "env.py", "answer:3", "--group", "2", cwd=folder)
    document("eval", "env.py", "oracle", cwd=folder)
    return folder


def test_jobs_lists_the_newest_first_with_what_each_came_to(folder: Path) -> None:
    done = hudsim("jobs", cwd=folder)
    assert done.returncode == 0, done.stderr
    _, newest, oldest = done.stdout.splitlines()
    for words in ("sums", "oracle", "3/3", "1.000", "passed 3"):
        assert words in newest
    for words in ("sums", "answer:3", "6/6", "0.667", "passed 2, partial 4"):
        assert words in oldest


def test_jobs_as_json(folder: Path) -> None:
    newest, oldest = document("jobs", cwd=folder)["jobs"]
    assert newest["config"]["agent"] == "oracle"
    assert (oldest["ran"], oldest["expected"], oldest["group"]) == (6, 6, 2)
    assert oldest["verdicts"] == {"passed": 2, "partial": 4}


def test_where_nothing_was_kept_reading_makes_no_folder(tmp_path: Path) -> None:
    for words in (("jobs",), ("show", "last"), ("show", "last-0")):
        done = hudsim(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (f"hudsim: nothing was kept in {tmp_path}/runs yet\n")
    assert not list(tmp_path.iterdir())


def test_show_prints_a_job_as_its_eval_did(folder: Path) -> None:
    oldest = document("jobs", cwd=folder)["jobs"][1]["job"]
    done = hudsim("show", oldest[:6], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "3 tasks × 2" in done.stdout
    assert "pass@1 0.333" in done.stdout
    assert document("show", oldest, cwd=folder)["job"] == oldest


def test_show_last_is_the_newest_job(folder: Path) -> None:
    newest = document("jobs", cwd=folder)["jobs"][0]["job"]
    assert document("show", "last", cwd=folder)["job"] == newest


def test_show_prints_a_run_with_its_prompt_answer_rewards_tree_and_steps(folder: Path) -> None:
    oldest = document("jobs", cwd=folder)["jobs"][1]["job"]
    done = hudsim("show", f"{oldest}-3", cwd=folder)
    assert done.returncode == 0, done.stderr
    for words in ("2+3[1]", "What is 2 + 3?", "partial, reward 0.500", "answer:3: done", "a=2, b=3",
                  "├── right  0.000 × 0.5", "└── short  1.000 × 0.5", "user", "agent"):  # fmt: skip
        assert words in done.stdout
    said = document("show", f"{oldest}-3", cwd=folder)
    assert said["trace"]["content"] == "3"
    assert said["grade"]["subscores"][0]["name"] == "right"
    assert [step["source"] for step in said["trace"]["steps"]][:3] == ["task", "user", "agent"]


def test_show_names_what_comes_near(folder: Path) -> None:
    done = hudsim("show", "zzz", cwd=folder)
    assert done.returncode == 2
    assert "no job 'zzz'" in done.stderr
    done = hudsim("show", "last-9", cwd=folder)
    assert done.returncode == 2
    assert "no run 'last-9'" in done.stderr


def test_a_run_of_a_robot_shows_how_its_rate_was_kept(tmp_path: Path) -> None:
    assert hudsim("init", "cart", "--template", "robot", cwd=tmp_path).returncode == 0
    said = document("eval", "cart", "cart/policy.py:Damp", "--task", "stop-0.5m-0", cwd=tmp_path)
    assert said["reward"] == 1.0
    done = hudsim("show", "last-0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("reached", "as fast as it goes", "p99", "infer", "robot", "terminated"):
        assert words in done.stdout


def test_a_run_that_raised_shows_where(tmp_path: Path) -> None:
    folder = write_sums(tmp_path)
    document("eval", "env.py", "agents.py:raises", "--task", "1+2", cwd=folder)
    done = hudsim("show", "last-0", cwd=folder)
    assert "raised" in done.stdout
    assert 'raise RuntimeError("no [idea] at all")' in done.stdout
    assert json.loads(hudsim("show", "last-0", "--json", cwd=folder).stdout)["end"] == "error"


def test_runs_that_were_taken_back_are_made_again_and_say_so(tmp_path: Path) -> None:
    folder = write_sums(tmp_path)
    document("eval", "env.py", "answer:3", cwd=folder)
    done = inside("jobs", "invalidate", "last-0", "last-1", "--because", "the server was [down]", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [line.partition(" ")[2] for line in done.stdout.splitlines()] == [
        "1+2[0]: passed, reward 1.000, counts no more",
        "2+3[0]: partial, reward 0.500, counts no more",
    ]
    assert document("jobs", cwd=folder)["jobs"][0]["verdicts"] == {"partial": 1, "cancelled": 2}
    shown = inside("show", "last", cwd=folder).stdout
    assert "over the 1 of 3 runs that count" in shown
    assert "cancelled: taken back: the server was [down]" in shown
    again = inside("jobs", "invalidate", "last-0", "--because", "x", cwd=folder)
    assert (again.returncode, again.stdout) == (2, "")
    assert "does not count anyway: cancelled" in again.stderr

    assert document("eval", "env.py", "answer:3", "--resume", "last", cwd=folder)["reward"] == pytest.approx(2 / 3)
    run = document("show", "last-1", cwd=folder)
    assert [(old["verdict"], old["reward"], old["because"]) for old in run["attempts"]] == [
        ("partial", 0.5, "the server was [down]")
    ]
    assert "taken back: the server was [down]" in inside("show", "last-1", cwd=folder).stdout


def test_runs_of_one_job_alone_are_taken_back(folder: Path) -> None:
    newest, oldest = (job["job"] for job in document("jobs", cwd=folder)["jobs"])
    done = inside("jobs", "invalidate", f"{newest}-0", f"{oldest}-0", "--because", "x", cwd=folder)
    assert done.returncode == 2
    assert "expected those of one" in done.stderr
    assert document("show", newest, cwd=folder)["verdicts"] == {"passed": 3}
    done = inside("jobs", "--runs", "elsewhere", "invalidate", f"{newest}-0", "--because", "x", cwd=folder)
    assert done.returncode == 2
    assert "--runs goes behind the word invalidate" in done.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_terminal_of_any_width_cuts_no_name(folder: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": str(columns), "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)  # a terminal, to whoever draws
    shown = {words: inside(*words, cwd=folder).stdout for words in (("jobs",), ("show", "last"), ("show", "last-0"))}
    for said in shown.values():
        assert "…" not in said
        assert "oracle" in said
    assert ("passed 3" in shown["jobs",]) == (columns > 60)
