from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hudsim.cli.main import app
from tests.cli.command import LIMIT_S, alive, children, document, hudsim, inside, on_a_terminal, serving, started, told
from tests.cli.sums import write_sums

KEYS = {"job", "reward", "mean_over_all", "verdicts", "spread", "runs"}


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    return write_sums(tmp_path / "sums")


def had(folder: Path) -> list[str]:
    """The runs that the counting agent had."""
    file = folder / "had.txt"
    return file.read_text().split() if file.exists() else []


def jobs(folder: Path) -> list[dict[str, Any]]:
    """What `hudsim jobs` says; nothing while nothing is kept."""
    done = hudsim("jobs", "--json", cwd=folder)
    found: list[dict[str, Any]] = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
    return found


def wait_until(folder: Path, process: subprocess.Popen[str], count: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while len(had(folder)) < count:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def printed_command(words: str) -> list[str]:
    """The command that goes on, as it was printed."""
    (line,) = (line for line in words.splitlines() if "--resume" in line)
    name, *rest = shlex.split(line)
    assert name == "hudsim"
    return rest


def test_a_line_a_task_then_what_it_comes_to(sums: Path) -> None:
    done = hudsim("eval", "env.py", "answer:3", cwd=sums)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["1+2", "1.000", "passed"] in [words[:3] for words in lines]
    assert ["2+3", "0.500", "partial"] in [words[:3] for words in lines]
    assert ["reward", "0.667"] in lines
    assert ["verdicts", "passed", "1,", "partial", "2"] in lines
    assert "3 of 3 done · passed 1, partial 2" in done.stderr
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_as_json_it_is_the_jobs_own_document(sums: Path) -> None:
    said = document("eval", "env.py", "agents.py:by_index", "--group", "2", cwd=sums)
    assert said.keys() == KEYS
    assert [(run["task"], run["index"]) for run in said["runs"]] == [
        (slug, index) for slug in ("1+2", "2+3", "3+4") for index in (0, 1)
    ]
    assert said["reward"] == pytest.approx((0 + 1 + 0 + 0.5 + 0 + 0.5) / 6)
    assert said["spread"]["1+2"]["state"] == "spread"
    assert said["runs"][1]["subscores"][0]["name"] == "right"


def test_of_groups_it_shows_each_reward_and_whether_they_can_train(sums: Path) -> None:
    done = hudsim("eval", "env.py", "agents.py:by_index", "--group", "4", cwd=sums)
    assert done.returncode == 0, done.stderr
    for words in ("▁█▁█", "▁▅▁▅", "pass@1 0.167, pass@4 0.333", "3 of 3 groups can train", "3 tasks × 4"):
        assert words in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_prints_the_command_that_runs_exactly_what_is_missing(
    sums: Path, number: signal.Signals
) -> None:
    words = ("eval", "env.py", "agents.py:Counting", "--group", "5", "--max-concurrent", "2", "--runs", "kept here")
    with started(*words, "--agent-set", "seconds=0.2", "--json", cwd=sums) as process:
        wait_until(sums, process, 3)
        code, seconds, errors = told(process, number)
    assert code == 130
    assert seconds < 2
    assert "of 15 runs count, " in errors
    assert "what ended is kept; to go on:" in errors
    assert "Traceback" not in errors
    before = {job["job"]: job["ran"] for job in document("jobs", "--runs", "kept here", cwd=sums)["jobs"]}
    ((job, ran),) = before.items()
    assert 1 <= ran < 15
    finished = had(sums)[:ran]

    done = hudsim(*printed_command(errors), cwd=sums)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["job"] == job
    assert len({run["run"] for run in said["runs"]}) == 15
    assert said["reward"] is not None
    again = had(sums)
    assert {run: again.count(run) for run in finished} == dict.fromkeys(finished, 1)
    assert not (sums / "runs").exists()


def test_killed_it_has_lost_nothing_that_was_finished(sums: Path) -> None:
    words = (
        "eval",
        "env.py",
        "agents.py:Counting",
        "--agent-set",
        "seconds=0.1",
        "--group",
        "10",
        "--max-concurrent",
        "2",
    )
    with started(*words, cwd=sums) as process:
        wait_until(sums, process, 5)
        process.kill()
        process.wait(LIMIT_S)
    kept = {run["run"]: run for run in document("show", "last", cwd=sums)["runs"]}
    assert 3 <= len(kept) < 30  # of those that the agent had, two may not have been graded yet
    said = document(*words, "--resume", "last", cwd=sums)
    assert len(said["runs"]) == 30
    assert {run["run"]: run for run in said["runs"] if run["run"] in kept} == kept
    again = had(sums)
    assert {again.count(run) for run in kept} == {1}


def test_an_agent_that_does_not_let_itself_be_stopped_does_not_keep_the_words_back(sums: Path) -> None:
    with started("eval", "env.py", "agents.py:stubborn", cwd=sums) as process:
        deadline = time.monotonic() + LIMIT_S
        while not (sums / "had.txt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        code, seconds, errors = told(process, signal.SIGINT)
    assert code == 130
    assert seconds < 3
    assert printed_command(errors)[:3] == ["eval", "env.py", "agents.py:stubborn"]


def test_a_run_without_a_verdict_ends_with_1_and_a_resume_makes_it_again(sums: Path) -> None:
    (sums / "broken").touch()
    done = hudsim("eval", "env.py", "oracle", "--group", "2", cwd=sums)
    assert done.returncode == 1
    assert "4 of 6 runs count, 2 ended as errors; to make the others:" in done.stderr
    assert done.stdout.count("RuntimeError: the [well] is dry") == 1
    assert "infra_error 2" in done.stdout
    assert "1.000 over the 4 of 6 runs that count, 0.667 if the others are 0" in done.stdout
    (sums / "broken").unlink()
    again = hudsim(*printed_command(done.stderr), cwd=sums)
    assert again.returncode == 0, again.stderr
    assert "passed 6" in again.stdout
    assert "3 of 6" not in again.stderr
    run = hudsim("show", "last-2", cwd=sums)
    assert "infra_error" in run.stdout  # the attempt before


def test_a_resume_with_another_plan_is_refused_by_name(sums: Path) -> None:
    document("eval", "env.py", "answer:3", "--group", "2", cwd=sums)
    done = hudsim("eval", "env.py", "answer:4", "--group", "3", "--resume", "last", cwd=sums)
    assert done.returncode == 2
    assert "group: got 3, the job has 2" in done.stderr
    assert "agent: got 'answer:4', the job has 'answer:3'" in done.stderr
    assert hudsim("eval", "env.py", "answer:3", "--resume", "last", cwd=sums).returncode == 0


def test_an_agent_that_raises_is_graded_as_it_stands_and_named_once(sums: Path) -> None:
    done = hudsim("eval", "env.py", "agents.py:raises", "--group", "2", cwd=sums)
    assert done.returncode == 0
    assert done.stdout.count("RuntimeError: no [idea] at all") == 1
    assert "failed 6" in done.stdout
    assert "Traceback" not in done.stderr


def test_settings_reach_the_environment_and_the_agent(sums: Path) -> None:
    said = document("eval", "env.py", "agents.py:Counting", "--set", "offset=10", "--agent-set", "answer=13", cwd=sums)
    assert said["verdicts"] == {"passed": 1, "partial": 2}


def test_some_tasks_alone(sums: Path) -> None:
    said = document("eval", "env.py", "answer:3", "--task", "1+2,3+4", cwd=sums)
    assert [run["task"] for run in said["runs"]] == ["1+2", "3+4"]


def test_rows_of_a_file_run_where_the_file_beside_it_says(sums: Path) -> None:
    (sums / "rows.jsonl").write_text(json.dumps({"env": "sums", "id": "add", "args": {"a": 5, "b": 6}}) + "\n")
    assert document("eval", "rows.jsonl", "oracle", cwd=sums)["reward"] == 1.0
    (sums / "env.py").rename(sums / "elsewhere.txt")
    (sums / "other").mkdir()
    (sums / "elsewhere.txt").rename(sums / "other/env.py")
    refused = hudsim("eval", "rows.jsonl", "oracle", cwd=sums)
    assert refused.returncode == 2
    assert "--env FILE" in refused.stderr
    assert document("eval", "rows.jsonl", "oracle", "--env", "other/env.py", cwd=sums)["reward"] == 1.0


def test_an_environment_that_is_served_already(sums: Path) -> None:
    with serving(str(sums), "--reveal-references") as (_, server):
        assert document("eval", "env.py", "oracle", "--runtime", server["url"], cwd=sums)["reward"] == 1.0
        refused = hudsim("eval", "env.py", "oracle", "--runtime", server["url"], "--set", "offset=1", cwd=sums)
    assert refused.returncode == 2
    assert "`hudsim serve`" in refused.stderr


def test_a_server_that_cannot_run_the_tasks_is_said_once_before_anything_runs(sums: Path) -> None:
    with serving(str(sums)) as (_, server):
        url = server["url"]
        for words, said in [
            (("env.py", "noop", "--runtime", "ws://127.0.0.1:1/"), "--runtime: 127.0.0.1:1: connection refused"),
            (("env.py", "noop", "--runtime", f"{url}x"), "--runtime: 127.0.0.1:"),
            (("env.py", "oracle", "--runtime", url), "(--reveal-references)"),
            (("letters", "noop", "--runtime", url), "'count'. There are: add"),
        ]:
            done = inside("eval", *words, cwd=sums)
            assert (done.returncode, done.stdout) == (2, "")
            assert said in done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert not (sums / "runs").exists()


def test_of_many_errors_it_says_how_all_are_shown_and_first_those_that_do_not_count(sums: Path) -> None:
    (sums / "broken").touch()
    done = hudsim("eval", "env.py", "agents.py:complains", "--group", "3", cwd=sums)
    assert done.returncode == 1
    listed = [line for line in done.stdout.splitlines() if "[well]" in line or "no idea" in line]
    assert "infra_error" in listed[0]
    assert len(listed) == 5
    assert "and 2 other errors  hudsim show" in done.stdout
    (command,) = (line.partition("errors  hudsim ")[2] for line in done.stdout.splitlines() if "other errors" in line)
    everything = inside(*command.removesuffix(" shows them all").split(), cwd=sums).stdout
    assert everything.count("no idea") == 6
    assert "other errors" not in everything


def test_an_environment_in_a_process_of_its_own(sums: Path) -> None:
    assert document("eval", "env.py", "oracle", "--runtime", "subprocess", cwd=sums)["reward"] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["env.py", "nop"], "did you mean 'noop'?"),
        (["env.py", "noop", "--task", "1+3"], "no task '1+3'; did you mean '2+3'?"),
        (["env.py", "noop", "--set", "ofset=1"], "did you mean 'offset'?"),
        (["env.py", "agents.py:Counting", "--agent-set", "anser=1"], "did you mean 'answer'?"),
        (["env.py", "agents.py:Counting", "--agent-set", "seconds=soon"], "seconds: got 'soon', expected float"),
        (["env.py", "noop", "--runtime", "locl"], "did you mean 'local'?"),
        (["env.py", "noop", "--runtime", "ws://127.0.0.1:1", "--set", "offset=1"], "give it to `hudsim serve`"),
        (["letter", "noop"], "did you mean 'letters'?"),
        (["nowhere.py", "noop"], "nowhere.py"),
        (["agents.py", "noop"], "got no tasks"),
        (["env.py", "noop", "--group", "0"], "'--group'"),
        (["env.py", "noop", "--timeout", "inf"], "'--timeout'"),
    ],
)
def test_names_are_looked_at_before_anything_is_made(
    sums: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(sums)
    with pytest.raises(SystemExit) as ended:
        app(["eval", *words], prog_name="hudsim")
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    assert said in printed.err
    assert not (sums / "runs").exists()


def test_what_cannot_be_kept_ends_with_1_in_words(sums: Path) -> None:
    (sums / "runs").write_text("a file")
    done = hudsim("eval", "env.py", "noop", cwd=sums)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("columns", [80, 160])
def test_on_a_terminal_it_draws_what_runs(sums: Path, columns: int) -> None:
    said = on_a_terminal("eval", "env.py", "agents.py:Counting", "--agent-set", "seconds=0.7", "--group", "2",
                         cwd=sums, columns=columns)  # fmt: skip
    for words in ("running", "1+2[0]", "6 of 6", "a second", "WARNING root: 1+2 is [slow]\r\n", "pass@1", "can train"):
        assert words in said
    assert "\x1b[?25h" in said  # the cursor is back


@pytest.mark.slow
def test_elsewhere_it_says_a_line_now_and_then(sums: Path) -> None:
    done = hudsim("eval", "env.py", "agents.py:Counting", "--agent-set", "seconds=1.5", "--group", "4",
                  "--max-concurrent", "2", cwd=sums)  # fmt: skip
    lines = done.stderr.splitlines()
    assert 2 <= len(lines) <= 4
    assert all("of 12 done" in line for line in lines)
    assert "left" in lines[0]


@pytest.mark.parametrize("runtime", ["local", "subprocess"])
def test_an_interrupt_leaves_no_process_of_a_robots_environment(tmp_path: Path, runtime: str) -> None:
    made = hudsim("init", "cart", "--template", "robot", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    words = ("eval", "cart", "cart/policy.py:Damp", "--group", "200", "--runtime", runtime)
    with started(*words, cwd=tmp_path) as process:
        deadline = time.monotonic() + LIMIT_S
        while not any(job["ran"] for job in jobs(tmp_path)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        sims = [child for own in children(process.pid) for child in (own, *children(own))]
        assert len(sims) > (runtime == "subprocess")
        code, seconds, errors = told(process, signal.SIGINT)
    assert code == 130
    assert seconds < 2
    assert "Traceback" not in errors
    assert not any(alive(sim) for sim in sims)
