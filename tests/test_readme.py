"""What README and its guides tell people to do is done here, word for word."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hudsim.graders.trust import trust_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()
TASKS = (ROOT / "docs" / "tasks.md").read_text()
CODING = (ROOT / "docs" / "coding.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    lines = (line.partition("  #")[0].strip() for block in blocks("sh") for line in block.splitlines())
    return [line for line in lines if line]


def run(command: str, folder: Path) -> str:
    """Run the Python command in the folder; what it printed. Fails with what it complained of."""
    arguments = [sys.executable, *shlex.split(command)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that README and its guides show."""
    path = tmp_path_factory.mktemp("readme")
    pages = (README, GUIDE, TASKS, CODING)
    for block in [*(block for page in pages for block in blocks("python", page)), *blocks("sh", CODING)]:
        file = path / block.splitlines()[0].removeprefix("# ")
        file.parent.mkdir(exist_ok=True)
        file.write_text(block)
    return path


@pytest.fixture(scope="module")
def kept(folder: Path) -> None:
    """Something to be shown."""
    run("-m hudsim.cli eval letters oracle", folder)


@pytest.fixture(scope="module")
def project(folder: Path) -> None:
    """The coding project that README makes."""
    run("-m hudsim.cli init words --template coding", folder)


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("hudsim")])
def test_a_command_runs(command: str, folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    words = command.split()
    if words[1] in ("jobs", "show"):
        request.getfixturevalue("kept")
    if words[1:3] == ["eval", "words"]:
        request.getfixturevalue("project")
    if words[1] == "init":
        folder = tmp_path
    assert run(f"-m hudsim.cli {command.removeprefix('hudsim ')}", folder)


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in commands():
        if command.startswith("make"):
            assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def test_the_script_drives_the_world(folder: Path) -> None:
    assert run("drive.py", folder).startswith("terminated True")


@pytest.mark.parametrize(
    "command",
    [
        "-m hudsim.cli check drift.py:Drift",
        "-m hudsim.cli run drift.py:Drift --policy hold --set num_envs=3 --json",
        "-m pytest -q test_ball.py -p no:cacheprovider",
        "-c 'import by_name, own_program'",
    ],
)
def test_what_the_guide_shows_works(command: str, folder: Path) -> None:
    run(command, folder)


def test_an_adapter_of_the_guide_binds_by_name(folder: Path) -> None:
    script = """
import numpy as np
from by_name import JointsOnly
from hudsim import Contract
contract = Contract.load({"features": {
    "observation/state": {
        "role": "observation", "dtype": "float32", "shape": [3], "names": ["joint1", "joint2", "grip"]},
    "action": {"role": "action", "dtype": "float32", "shape": [3]}}, "schema": "hudsim/1"})
adapter = JointsOnly()
adapter.bind(contract, {})
print(adapter.adapt_observation({"observation/state": np.array([1, 2, 3], np.float32)}, "go")["state"].tolist())
"""
    assert run(f"-c {shlex.quote(script)}", folder).strip() == "[[2.0, 1.0]]"


def reward_of(source: str, agent: str, folder: Path) -> float:
    job = json.loads(run(f"-m hudsim.cli eval {source} {agent} --json", folder))
    assert set(job["verdicts"]) <= {"passed", "partial", "failed"}
    return float(job["reward"])


@pytest.mark.parametrize("tasks", ["ball_tasks.py", "receipts.py", "receipts.py --set currency=USD"])
def test_the_tasks_that_are_shown_are_worth_one_to_their_author_and_nothing_to_nobody(tasks: str, folder: Path) -> None:
    assert reward_of(tasks, "oracle", folder) == 1.0
    assert reward_of(tasks, "noop", folder) == 0.0


@pytest.mark.parametrize("runtime", ["local", "subprocess"])
def test_the_daemon_that_is_shown_is_reached(runtime: str, folder: Path) -> None:
    assert reward_of("site_tasks.py", f"visitor.py:visit --runtime {runtime}", folder) == 1.0


def test_the_daemon_that_is_shown_is_reached_through_a_tunnel(folder: Path) -> None:
    script = """
import asyncio
from hudsim import LocalRuntime, Task
from hudsim.environment import ControlClient
from visitor import urlopen

async def main():
    async with LocalRuntime("site_tasks.py")(Task(env="site", id="read")) as runtime:
        async with await ControlClient.connect(runtime.url) as control:
            site = control.capabilities["site"]
            through = await control.reach(site, direct=False)
            print(through.url != site.url, await asyncio.to_thread(lambda: urlopen(through.url, timeout=10).read()))

asyncio.run(main())
"""
    assert run(f"-c {shlex.quote(script)}", folder).strip() == "True b'heron'"


def test_the_comparison_that_is_shown_is_kept(folder: Path) -> None:
    printed = run("compare.py", folder)
    assert "{'passed': 4} 1.0" in printed
    assert "settle-0 all_zero" in printed


def test_the_runtime_that_is_shown_serves_the_tasks(folder: Path) -> None:
    assert run("own_runtime.py", folder).strip() == "[0.2, 1.0]"


def test_the_session_that_is_shown_goes_on_after_it_was_left(folder: Path) -> None:
    assert run("by_hand.py", folder).splitlines()[-1] == "passed 1.0 ['amount', 'currency']"


def test_the_policy_that_is_shown_learns(folder: Path) -> None:
    rewards = [float(line) for line in run("learn.py", folder).splitlines()]
    assert len(rewards) == 5
    assert rewards[-1] > rewards[0] + 0.3  # from 1 in 6 to nearly all


def test_the_rows_that_are_shown_are_tasks(folder: Path) -> None:
    (rows,) = blocks("json", TASKS)
    (folder / "rows.jsonl").write_text(rows)
    assert reward_of("rows.jsonl", "oracle", folder) == 1.0


def test_the_query_that_is_shown_reads_what_was_kept(folder: Path, kept: None) -> None:
    (query,) = blocks("sql", TASKS)
    with contextlib.closing(sqlite3.connect(folder / "runs" / "hudsim.db")) as connection:
        assert "strawberry-r" in [slug for slug, _, _ in connection.execute(query)]


def test_the_tests_that_are_shown_pass(folder: Path) -> None:
    run("-m pytest -q test_receipts.py -p no:cacheprovider", folder)


@pytest.mark.parametrize(
    ("agent", "reward"), [("oracle", 1.0), ("noop", 0.0), ("mender.py:mend", 1.0), ("script:mend.sh", 0.0)]
)
def test_the_coding_task_that_is_shown_pays_for_what_is_right(agent: str, reward: float, folder: Path) -> None:
    assert reward_of("shop.py", agent, folder) == reward


def test_the_workspace_that_is_shown_works_alone(folder: Path) -> None:
    assert run("alone.py", folder).splitlines()[:2] == ["['heron', '/workspace', 'agent']", "['notes/a.txt'] heron"]


def test_the_attacks_that_are_shown_are_paid_nothing(folder: Path) -> None:
    run("-m pytest -q test_shop.py -p no:cacheprovider", folder)


def test_the_trust_card_that_is_shown_is_the_graders_own() -> None:
    assert trust_table() in CODING


def test_what_is_ones_own_fits_on_a_screen() -> None:
    sizes = {block.splitlines()[0]: len(block.splitlines()) for block in blocks("python")}
    assert sizes["# ball.py"] <= 31
    assert sizes["# damp.py"] <= 20
    assert sizes["# ball_tasks.py"] <= 34


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_what_is_linked_is_there(page: Path) -> None:
    for target, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", page.read_text())):
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        if heading:
            assert heading in headings(there), f"{target}#{heading}"


def headings(page: Path) -> list[str]:
    """What a link to a part of the page may say, as GitHub makes it of the part's heading."""
    lines = [line.lstrip("# ") for line in page.read_text().splitlines() if line.startswith("#")]
    return [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines]
