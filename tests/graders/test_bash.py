from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from hudsim.coding import Limits, Workspace
from hudsim.errors import SandboxBroken, UsageError
from hudsim.graders import BashGrader, SubScore, combine
from tests.asyncrun import within


def grade(command: str, limits: Limits | None = None, **options: Any) -> SubScore:
    out: list[SubScore] = []

    async def main() -> None:
        async with Workspace(limits=limits) as workspace:
            (workspace.root / "report.md").write_text("done\n")
            workspace.own()
            out.append(await BashGrader.grade(workspace=workspace, command=command, **options))

    within(30.0, main())
    return out[0]


def about(subscore: SubScore) -> dict[str, Any]:
    assert subscore.info is not None
    return subscore.info


def test_a_command_that_exits_with_0_is_1() -> None:
    scored = grade("grep done report.md; echo oops >&2", weight=0.5)
    assert (scored.name, scored.value, scored.weight) == ("BashGrader", 1.0, 0.5)
    assert {key: about(scored)[key] for key in ("exit_code", "stdout", "stderr", "timed_out")} == {
        "exit_code": 0, "stdout": "done\n", "stderr": "oops\n", "timed_out": False,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["exit 3", "false", "kill -9 $$", "no_such_command"])
def test_any_other_end_is_0(command: str) -> None:
    scored = grade(command)
    assert scored.value == 0.0
    assert about(scored)["exit_code"] != 0
    assert "verdict" not in about(scored)


def test_it_runs_in_the_sandbox_with_bash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "hunter2")
    assert grade('[[ -z "$SECRET_OF_THE_HOST" && "$PWD" == /workspace && "$(id -u)" != 0 ]]').value == 1.0


def test_a_command_that_takes_too_long_is_a_valid_0() -> None:
    scored = grade("echo begun; sleep 20", timeout=0.5)
    assert (scored.value, about(scored)["exit_code"], about(scored)["verdict"]) == (0.0, None, "grade_timeout")
    assert about(scored)["stdout"] == "begun\n"


def test_a_limit_that_was_met_is_the_verdict() -> None:
    limits = Limits(memory_bytes=64 << 20, wall_s=20)
    scored = grade("python3 -c 'x = bytearray(b\"x\") * (512 << 20)'", limits=limits)
    assert scored.value == 0.0
    assert about(scored).get("verdict") in ("resource_limit", None)


@pytest.mark.parametrize("command", ["true", "head -c 4M /dev/zero > big; sleep 20"])
def test_a_sandbox_that_is_killed_is_a_0_where_a_limit_was_met_and_else_an_error(command: str) -> None:
    async def main() -> None:
        async with Workspace(limits=Limits(workspace_bytes=1 << 20)) as workspace:
            await workspace.run(command)
            await workspace.run("rm -f big")
            grading = asyncio.create_task(BashGrader.grade(workspace=workspace, command="touch begun; sleep 20"))
            while not (workspace.root / "begun").exists():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            pid = (await workspace.sandbox()).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            if command == "true":
                with pytest.raises(SandboxBroken):
                    await grading
                return
            scored = await grading
            assert (scored.value, about(scored)["verdict"]) == (0.0, "resource_limit")
            assert "workspace: its files took more than the 1,048,576 bytes allowed" in about(scored)["why"][0]

    within(30.0, main())


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a shell command"):
        grade(" ")


def test_its_grade_carries_the_verdict() -> None:
    async def main() -> None:
        async with Workspace() as workspace:
            result = await combine(
                BashGrader.grade(workspace=workspace, command="true"),
                BashGrader.grade(workspace=workspace, command="sleep 9", timeout=0.3),
            )
        assert (result.reward, str(result.outcome)) == (0.0, "grade_timeout")
        assert result.problems() == []

    within(20.0, main())
