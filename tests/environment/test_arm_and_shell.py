"""One environment with a robot and a workspace: a task that wants both of one agent."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from hudsim.bridges.arm.bridge import ArmBridge
from hudsim.coding import SSHClient
from hudsim.environment import Environment, Task
from hudsim.errors import WorkspaceError
from hudsim.eval import LocalRuntime, Run, Taskset
from hudsim.eval.protocols import Agent
from hudsim.graders import SubScore, combine
from hudsim.policies.scripted import Scripted
from hudsim.registry.agent_choice import oracle
from hudsim.robot.agent import RobotAgent
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import Serving
from tests.asyncrun import on_loop

REPORT = "report.json"


def reporting() -> tuple[Environment, Task]:
    """The arm is to reach its marker, and a report in the workspace to say no more than is in the record."""
    env = Environment("reporting")
    arm = env.robot(
        RobotEndpoint(ArmBridge, serving=Serving(num_envs=2), task="reach", privileged=True, cameras=False), name="arm"
    )
    ws = env.workspace(network=False)

    @env.template(id="reach_and_report")
    async def reach_and_report(seed: int = 0) -> AsyncGenerator[Any, Any]:
        await ws.write("README", "Say in report.json how it went.\n")
        episode = await arm.reset(seed=seed, difficulty="easy")
        yield f"{episode['prompt']} Then do what README says."
        record = await arm.result()
        try:
            report = json.loads(await ws.read(REPORT))
        except WorkspaceError:
            report = {}
        seen = {"ticks": record["ticks"], "success": bool(record["success"])}
        is_true = bool(report) and report.items() <= seen.items()
        yield await combine(
            SubScore(name="reached", weight=0.75, value=float(seen["success"])),
            SubScore(name="reported", weight=0.25, value=float(is_true)),
        )

    @reach_and_report.reference
    def done(seed: int = 0) -> dict[str, Any]:
        return {"policy": "scripted", "files": {REPORT: '{"success": true}'}}

    return env, reach_and_report(seed=3)


async def played(agent: Agent, group: int = 1) -> list[Run]:
    env, task = reporting()
    job = await Taskset("both", [task]).run(
        agent, runtime=LocalRuntime(env, reveal=True), group=group, max_concurrent=4, runs=None
    )
    return job.runs


async def report(run: Run, what: dict[str, Any]) -> None:
    async with await SSHClient.of(run) as shell:
        assert "report.json" in (await shell.run("cat README")).text
        await shell.write(REPORT, json.dumps(what).encode())


def parts(run: Run) -> dict[str, float]:
    assert run.grade is not None, run.error
    return {part.name: part.value for part in run.grade.subscores or ()}


@on_loop
async def test_an_agent_plays_the_arm_and_then_writes_a_file_and_both_are_graded() -> None:
    player = RobotAgent(Scripted())

    async def agent(run: Run) -> None:
        await player(run)
        seen = run.trace.steps[-1].data
        await report(run, {"ticks": seen["ticks"], "success": seen["success"]})

    runs = await played(agent, group=3)
    assert [run.reward for run in runs] == [1.0] * 3, [run.error for run in runs]
    for run in runs:
        assert set(run.capabilities) == {"arm", "shell"}
        assert set(run.bindings) == {"arm", "shell"}
        assert {"robot", "tool"} <= {step.source for step in run.trace.steps}
    assert len({run.bindings["arm"]["token"] for run in runs}) == 3
    assert len({run.bindings["shell"]["session"] for run in runs}) == 3


@on_loop
async def test_the_oracle_plays_its_policy_and_makes_its_files() -> None:
    (run,) = await played(oracle())
    assert (run.reward, run.verdict) == (1.0, "passed"), run.error
    said = [step.content for step in run.trace.steps if step.source in ("agent", "tool")]
    assert said == ["plays scripted", f"write {REPORT}"]


@on_loop
async def test_a_report_of_what_was_not_done_is_worth_nothing() -> None:
    async def boast(run: Run) -> None:
        await report(run, {"success": True})

    async def confess(run: Run) -> None:
        await report(run, {"success": False})

    (boasted,), (confessed,) = await played(boast), await played(confess)
    assert (boasted.reward, parts(boasted)) == (0.0, {"reached": 0.0, "reported": 0.0})
    assert (confessed.reward, parts(confessed)) == (0.25, {"reached": 0.0, "reported": 1.0})
