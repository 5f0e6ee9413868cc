from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hudsim.agents import Noop, Oracle
from hudsim.agents.changes import Changes
from hudsim.coding.client import SSHClient
from hudsim.coding_envs.repo.history import Commit, history
from hudsim.coding_envs.repo.tasks import tasks
from hudsim.errors import UnknownName
from hudsim.eval import Run
from tests.asyncrun import on_loop, within

ISSUES = [commit for commit in history() if commit.issue is not None]


def outcomes_of(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The outcome of each test in a repository: passed, failed or error."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "--tb=no", "--no-header"]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=50)
    words = [line.split()[0] for line in done.stdout.splitlines() if "::" in line or line.startswith("ERROR ")]
    return [word.lower() for word in words]


@pytest.mark.parametrize("commit", ISSUES, ids=lambda commit: commit.name)
def test_every_test_of_an_issue_fails_before_it_and_passes_after(tmp_path: Path, commit: Commit) -> None:
    asked = {path: text for path, text in commit.before.items() if not path.startswith("tests/")} | commit.tests
    assert set(outcomes_of(tmp_path / "asked", asked)) == {"failed"}
    assert set(outcomes_of(tmp_path / "before", commit.before)) == {"passed"}
    assert set(outcomes_of(tmp_path / "after", {**commit.before, **commit.changed})) == {"passed"}


def test_tests_are_only_added_and_never_changed() -> None:
    brought = [path for commit in history() for path in commit.tests]
    assert len(brought) == len(set(brought))


def test_an_issue_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"no issue in repo '09_thousand'; did you mean '09_thousands'\?"):
        Commit.of("09_thousand")


def told(folder: Path, *command: str, given: bytes = b"") -> str:
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=True, timeout=50)
    return done.stdout.decode(errors="replace")


def test_a_bundle_holds_the_history_before_the_issue_and_nothing_else(tmp_path: Path) -> None:
    commit = Commit.of("09_thousands")
    (tmp_path / "bundle").write_bytes(commit.bundle())
    told(tmp_path, "git", "clone", "--quiet", "--branch", "main", "bundle", "work")
    work = tmp_path / "work"
    subjects = told(work, "git", "log", "--format=%s", "--reverse").splitlines()
    assert subjects == [earlier.message for earlier in history()[: commit.index]]
    objects = told(work, "git", "cat-file", "--batch-all-objects", "--batch-check").split()
    assert objects.count("commit") == commit.index
    blobs = told(work, "git", "cat-file", "--batch-all-objects", "--batch")
    assert "commas" not in blobs
    files = {file.relative_to(work).as_posix() for file in work.rglob("*") if file.is_file()}
    assert {file for file in files if not file.startswith(".git/")} == set(commit.before)


def test_the_history_is_the_same_everywhere(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_bytes(Commit.of("04_small_refunds").bundle())
    assert told(tmp_path, "git", "ls-remote", "bundle", "refs/heads/main").startswith("6f7fbcc")


def test_the_patches_fit(tmp_path: Path) -> None:
    for commit in ISSUES:
        folder = tmp_path / commit.name
        for path, text in commit.before.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        told(folder, "git", "apply", "-", given=commit.patch.encode())
        for path, text in commit.changed.items():
            assert path in commit.tests or (folder / path).read_text() == text


# Graded ---------------------------------------------------------------------------------------------------------------


@on_loop
async def test_nothing_is_worth_nothing_and_what_the_authors_did_everything() -> None:
    two = tasks.filter(["last-day", "csv"])
    noop, oracle = await two.run(Noop(), runs=None), await two.run(Oracle(), runs=None)
    assert [(run.reward, run.verdict, run.error) for run in noop.runs] == [(0.0, "failed", None)] * 2
    assert [(run.reward, run.verdict, run.error) for run in oracle.runs] == [(1.0, "passed", None)] * 2
    assert [run.grade.problems() for run in oracle.runs if run.grade] == [[], []]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_issue_can_be_solved_and_none_by_doing_nothing() -> None:
    async def both() -> None:
        noop = await tasks.run(Noop(), runs=None, max_concurrent=2)
        oracle = await tasks.run(Oracle(), runs=None, max_concurrent=2)
        assert {run.reward for run in noop.runs} == {0.0}
        assert [(run.slug, run.reward, run.error) for run in oracle.runs] == [(slug, 1.0, None) for slug in tasks.tasks]

    within(280, both())


SORTED_ONLY = (
    "sed -i 's/    return found/    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))/'"
)
MENDING = "sed -i 's/entry.day < last/entry.day <= last/' tally/select.py"
BREAKING = "sed -i 's/:02}\"$/:03}\"/' tally/money.py"


@pytest.mark.parametrize(
    ("slug", "commands", "asked", "kept"),
    [
        ("order", [f"{SORTED_ONLY} tally/report.py"], (0.3, 0.9), (1.0, 1.0)),
        ("last-day", [MENDING, BREAKING], (1.0, 1.0), (0.5, 0.99)),
        ("last-day", ["rm -r tally"], (0.0, 0.0), (0.0, 0.0)),
    ],
    ids=["half a fix", "a fix that breaks what worked", "everything deleted"],
)  # fmt: skip
@on_loop
async def test_it_is_worth_the_lesser_of_what_was_asked_and_what_was_kept(
    slug: str, commands: list[str], asked: tuple[float, float], kept: tuple[float, float]
) -> None:
    async def work(run: Run) -> None:
        await Changes(commands=commands).make(run)

    (run,) = (await tasks.filter([slug]).run(work, runs=None)).runs
    assert (run.end, run.error) == ("done", None)
    assert run.grade is not None
    assert run.grade.subscores is not None
    (tree,) = run.grade.subscores
    parts = {part.name: part.value for part in tree.children or []}
    assert asked[0] <= parts["asked"] <= asked[1]
    assert kept[0] <= parts["kept"] <= kept[1]
    assert run.reward == min(parts.values())
    assert run.grade.problems() == []


@on_loop
async def test_an_agent_finds_a_repository_that_ends_before_the_issue() -> None:
    seen: dict[str, str] = {}

    async def look(run: Run) -> None:
        async with await SSHClient.of(run) as shell:
            for command in ("git log --format=%s | head -1", "git status --short", "git remote", "ls tests"):
                seen[command.split(" |")[0]] = (await shell.run(command)).stdout.decode()
            assert (await shell.run("python -m pytest -q")).code in (0, 1)

    (run,) = (await tasks.filter(["nested"]).run(look, runs=None)).runs
    assert (run.end, run.reward) == ("done", 0.0)
    assert "Please add to `tally/report.py`" in run.prompt_text
    assert seen["git log --format=%s"] == "List the largest total first; tell no cases apart\n"
    assert (seen["git status --short"], seen["git remote"]) == ("", "")
    assert "test_order.py" in seen["ls tests"]
    assert "test_nested.py" not in seen["ls tests"]
