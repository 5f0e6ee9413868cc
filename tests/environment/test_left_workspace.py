"""What an agent leaves in its workspace when the grade begins: its connections, its processes, its files."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from hudsim import Environment, LocalRuntime, Taskset
from hudsim.coding import Limits, SSHClient, Workspace
from hudsim.environment.reward import lost
from hudsim.errors import HudsimError, SandboxBroken, WorkspaceError
from hudsim.eval import Run
from hudsim.graders import BashGrader, combine
from tests.asyncrun import on_loop

Grade = Callable[[Workspace], Awaitable[Any]]

ANSWERS = "(while sleep 0.02; do [ -e ask ] && touch answer; done) </dev/null >/dev/null 2>&1 & sleep 0.1"
"""What answers whoever asks for it, for as long as it is let."""
_ASK = "touch ask; for n in $(seq {}); do [ -e answer ] && exit 0; sleep 0.05; done; exit 1"
ASK, ASK_LONG = _ASK.format(20), _ASK.format(200)
"""A second is enough for one who can answer; ten are for a machine that is busy."""


async def played(command: str, grade: Grade, before: Grade | None = None) -> Run:
    """The run of an agent that does no more than ``command``, and is graded by ``grade``."""
    env = Environment("left")
    ws = env.workspace(network=False, limits=Limits(output_bytes=1 << 16))

    @env.template()
    async def task() -> AsyncGenerator[Any, Any]:
        if before is not None:
            await before(ws)
        yield "do as you like"
        yield await grade(ws)

    async def agent(run: Run) -> None:
        async with await SSHClient.of(run) as shell:
            await shell.run(command)

    job = await Taskset("left", [task()]).run(agent, runtime=LocalRuntime(env))
    return job.runs[0]


async def read_notes(ws: Workspace) -> float:
    return float(await ws.read("NOTES.md") == b"heron\n")


async def read_frozen_notes(ws: Workspace) -> float:
    return float((await ws.freeze()).read("NOTES.md") == b"heron\n")


async def read_both_at_once(ws: Workspace) -> float:
    async with asyncio.TaskGroup() as group:
        notes, more = (group.create_task(ws.read(name)) for name in ("NOTES.md", "MORE.md"))
    return float(notes.result() == more.result())


async def run_in_the_folder(ws: Workspace) -> float:
    return float((await ws.run("true", cwd="/workspace/notes")).code == 0)


# Its files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "grade", "why"),
    [
        ("true", read_notes, "cannot read NOTES.md: NOTES.md: no such file"),
        ("mkfifo NOTES.md", read_notes, "cannot read NOTES.md: NOTES.md: no such file"),
        ("mkdir NOTES.md", read_notes, "cannot read NOTES.md: NOTES.md: no such file"),
        ("touch NOTES.md; chmod 000 NOTES.md", read_notes, "ermission denied"),
        ("head -c 70000 /dev/zero > NOTES.md", read_notes, "70,000 bytes, more than 65,536"),
        ("true", read_frozen_notes, "cannot read NOTES.md: no such file"),
        ("true", read_both_at_once, "no such file"),
        ("ln -s /etc/passwd NOTES.md", read_frozen_notes, "cannot read NOTES.md: a link"),
        ("true", run_in_the_folder, "/workspace/notes"),
        ("mkdir -m 000 notes", run_in_the_folder, "/workspace/notes"),
    ],
)
@on_loop
async def test_what_the_agents_files_do_not_let_be_graded_is_its_loss(command: str, grade: Grade, why: str) -> None:
    run = await played(command, grade)
    assert (str(run.verdict), run.reward) == ("failed", 0.0)
    assert run.grade is not None
    assert why in (run.grade.content or "")


@on_loop
async def test_a_folder_that_bash_cannot_enter_is_a_0_of_that_grader_alone() -> None:
    async def grade(ws: Workspace) -> Any:
        return await combine(
            BashGrader.grade(workspace=ws, command="true", cwd="/workspace/notes"),
            BashGrader.grade(workspace=ws, command="true"),
        )

    run = await played("true", grade)
    assert (str(run.verdict), run.reward) == ("partial", 0.5)
    assert run.grade is not None
    assert run.grade.subscores is not None
    assert "/workspace/notes" in (run.grade.subscores[0].info or {})["stderr"]


@on_loop
async def test_what_is_missing_before_the_agent_plays_is_no_loss_of_its() -> None:
    run = await played("true", read_notes, before=read_notes)
    assert (str(run.verdict), run.reward) == ("infra_error", None)


# Its sandbox ----------------------------------------------------------------------------------------------------------


def test_a_sandbox_that_broke_is_a_loss_where_there_is_evidence() -> None:
    evaluation = lost(SandboxBroken("the sandbox is gone"), ["memory: 3 processes were killed"])
    assert (evaluation.reward, str(evaluation.outcome)) == (0.0, "resource_limit")
    assert evaluation.info == {"why": ["memory: 3 processes were killed"]}
    broken = SandboxBroken("the sandbox is gone")
    with pytest.raises(SandboxBroken):
        lost(broken, [])
    broken.data["evidence"] = ["processes: all 32 were running"]
    assert lost(broken, []).info == {"why": ["processes: all 32 were running"]}


def test_a_loss_says_which_grader_it_was() -> None:
    error: HudsimError = WorkspaceError("cannot read NOTES.md: no such file")
    error.add_note("in the grader 'notes'")
    assert lost(error, []).content == "cannot read NOTES.md: no such file; in the grader 'notes'"


@pytest.mark.parametrize(
    ("first", "verdict", "reward"),
    [("true", "infra_error", None), ("head -c 4M /dev/zero > big; sleep 20", "resource_limit", 0.0)],
)
@on_loop
async def test_a_graders_own_sandbox_says_why_it_broke(first: str, verdict: str, reward: float | None) -> None:
    async def grade(ws: Workspace) -> float:
        limits = Limits(workspace_bytes=1 << 20)
        async with ws.new_sandbox(limits=limits, guest_path="/workspace") as box:
            await box.run(first)
            assert box.root is not None
            running = asyncio.create_task(box.run("rm -f big; touch begun; sleep 20"))
            while not (box.root / "begun").exists():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            pid = (await box.sandbox()).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            return float((await running).code == 0)

    run = await played("true", grade)
    assert (str(run.verdict), run.reward) == (verdict, reward)


# Its connections ------------------------------------------------------------------------------------------------------


@on_loop
async def test_when_the_grade_begins_the_shell_is_closed() -> None:
    env = Environment("closed")
    ws = env.workspace(network=False)
    graded, tried = asyncio.Event(), asyncio.Event()
    came_of_it: list[str] = []

    @env.template()
    async def notes() -> AsyncGenerator[Any, Any]:
        yield "Write NOTES.md."
        graded.set()
        await tried.wait()
        yield await combine(BashGrader.grade(workspace=ws, command="test -s NOTES.md"))

    async def later(run: Run, shell: SSHClient) -> None:
        await graded.wait()
        try:
            await _told(came_of_it, shell.run("echo late > NOTES.md"))
            await _told(came_of_it, shell.write("NOTES.md", b"late"))
            await _told(came_of_it, _anew(run))
        finally:
            tried.set()

    async def agent(run: Run) -> None:
        shell = await SSHClient.of(run)
        await shell.__aenter__()
        await shell.run("true")
        kept.append(asyncio.create_task(later(run, shell)))

    kept: list[asyncio.Task[None]] = []
    job = await Taskset("closed", [notes()]).run(agent, runtime=LocalRuntime(env))
    await asyncio.gather(*kept)
    assert [what in ("LinkLost", "SandboxError") for what in came_of_it] == [True] * 3, came_of_it
    assert (str(job.runs[0].verdict), job.runs[0].reward) == ("failed", 0.0)


async def _anew(run: Run) -> None:
    async with await SSHClient.connect(run.capabilities["shell"], run.bindings["shell"]) as shell:
        await shell.run("echo late > NOTES.md")


async def _told(came_of_it: list[str], work: Awaitable[Any]) -> None:
    try:
        await work
    except HudsimError as error:
        came_of_it.append(type(error).__name__)
    else:
        came_of_it.append("it was done")


# Its processes --------------------------------------------------------------------------------------------------------


async def by_run(ws: Workspace) -> float:
    return float((await ws.run(ASK)).code == 0)


async def by_run_beside(ws: Workspace) -> float:
    return float((await ws.run(ASK_LONG, keep_running=True)).code == 0)


async def by_bash(ws: Workspace) -> Any:
    return await combine(BashGrader.grade(workspace=ws, command=ASK))


async def by_bash_beside(ws: Workspace) -> Any:
    return await combine(BashGrader.grade(workspace=ws, command=ASK_LONG, keep_running=True))


@pytest.mark.parametrize(
    ("grade", "reward"), [(by_run, 0.0), (by_bash, 0.0), (by_run_beside, 1.0), (by_bash_beside, 1.0)]
)
@on_loop
async def test_what_the_agent_left_running_is_ended_unless_it_is_to_be_kept(grade: Grade, reward: float) -> None:
    assert (await played(ANSWERS, grade)).reward == reward


@on_loop
async def test_what_one_graded_command_left_running_does_not_reach_the_next() -> None:
    async def grade(ws: Workspace) -> Any:
        return await combine(
            BashGrader.grade(workspace=ws, command=ANSWERS), BashGrader.grade(workspace=ws, command=ASK)
        )

    assert (await played("true", grade)).reward == 0.5


@on_loop
async def test_a_server_is_asked_before_others_that_run_alone() -> None:
    async def grade(ws: Workspace) -> Any:
        return await combine(
            BashGrader.grade(workspace=ws, command=ASK_LONG, keep_running=True),
            BashGrader.grade(workspace=ws, command="rm answer && sleep 0.2 && test ! -e answer"),
        )

    assert (await played(ANSWERS, grade)).reward == 1.0


@on_loop
async def test_commands_of_a_grade_do_not_end_each_other() -> None:
    async def grade(ws: Workspace) -> float:
        done = await asyncio.gather(
            ws.run("sleep 0.2"), ws.run("sleep 0.2", keep_running=True), ws.run("sleep 0.2", keep_running=True),
            ws.freeze(), BashGrader.grade(workspace=ws, command="sleep 0.2"),
        )  # fmt: skip
        return float([one.code for one in done[:3]] == [0, 0, 0] and done[4].value == 1.0)

    assert (await played("true", grade)).reward == 1.0
