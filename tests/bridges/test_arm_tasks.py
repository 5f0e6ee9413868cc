"""The arm's tasks as graded runs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any, Self

import pytest

from hudsim.agents import Noop
from hudsim.bridges.arm import tasks as arm
from hudsim.environment import Environment, Task
from hudsim.errors import UsageError
from hudsim.eval import Job, LocalRuntime, Run, Taskset
from hudsim.eval.protocols import Agent
from hudsim.graders import EvaluationResult, Verdict
from hudsim.policies.hold import Hold
from hudsim.policies.random_actions import RandomActions
from hudsim.policies.scripted import Scripted
from hudsim.registry.agent_choice import oracle
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.ending import End
from hudsim.robot.model import Model
from hudsim.robot.play import lost_record
from hudsim.robot.robot_run import RobotRun
from tests.asyncrun import on_loop

ALL = {
    "reach": (arm.reach_env, arm.reach_tasks),
    "lift": (arm.lift_env, arm.lift_tasks),
    "push": (arm.push_env, arm.push_tasks),
}
BLIND = {"cameras": False}


async def played(task: str, agent: Agent, *, slugs: list[str] | None = None, num_envs: int = 4, **options: Any) -> Job:
    """A job of ``task``'s tasks (``slugs`` of them) in this process, kept nowhere."""
    environment, tasks = ALL[task]
    chosen = tasks if slugs is None else tasks.filter(slugs)
    runtime = LocalRuntime(environment, settings={**BLIND, "num_envs": num_envs}, reveal=True)
    return await chosen.run(agent, runtime=runtime, runs=None, **options)


def parts_of(run: Run) -> dict[str, float]:
    assert run.grade is not None
    return {part.name: part.value for part in run.grade.subscores or []}


def test_every_taskset_has_each_difficulty_with_two_seeds(tmp_path: Path) -> None:
    for task, (environment, tasks) in ALL.items():
        assert environment.name == tasks.name == f"arm-{task}"
        assert list(tasks.tasks) == [f"{task}-{d}-{seed}" for d in ("easy", "medium", "hard") for seed in (0, 1)]
        row = tasks[f"{task}-hard-1"]
        assert (row.args, row.columns) == ({"difficulty": "hard", "seed": 1}, {"difficulty": "hard", "seed": 1})
        again = Taskset.from_file(tasks.to_file(tmp_path / f"{task}.jsonl"))
        assert [task.to_row() for task in again] == [task.to_row() for task in tasks]
        assert abs(sum(arm.WEIGHTS[task].values()) - 1) < 1e-9


def test_a_difficulty_or_a_seed_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"difficulty: got 'esay'.*'easy', 'medium' or 'hard'"):
        arm.lift(difficulty="esay")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"seed: got -1; .*greater than or equal to 0"):
        arm.lift(seed=-1)


@on_loop
@pytest.mark.parametrize("task", list(ALL))
async def test_the_expert_passes_every_task(task: str) -> None:
    job = await played(task, RobotAgent(Scripted()))
    for run in job.runs:
        assert (run.reward, run.verdict, run.end) == (1.0, Verdict.passed, "done"), run
        assert parts_of(run) == dict.fromkeys(arm.WEIGHTS[task], 1.0)
        assert run.grade is not None
        assert run.grade.problems() == []
        assert run.grade.info["end"] == "terminated"
        assert run.grade.info["cadence"]["ticks"] == run.grade.info["ticks"] > 20
        (robot,) = [step for step in run.trace.steps if step.source == "robot"]
        assert robot.data["ticks"] == run.grade.info["ticks"]
        assert robot.data["cadence"]["stages_us"]["infer"]["p50"] > 0


@on_loop
async def test_the_oracle_plays_the_reference() -> None:
    job = await played("reach", oracle(), slugs=["reach-easy-0", "reach-hard-1"])
    assert [run.reward for run in job.runs] == [1.0, 1.0]


@on_loop
@pytest.mark.parametrize("agent", [Noop(), RobotAgent(Hold(chunk=50))], ids=["noop", "hold"])
async def test_who_does_nothing_gets_a_valid_nothing(agent: Agent) -> None:
    job = await played("reach", agent, slugs=["reach-easy-0", "reach-easy-1"])
    assert [(run.reward, run.verdict, run.end) for run in job.runs] == [(0.0, Verdict.failed, "done")] * 2


class _Same(RandomActions):
    """The same draws in each run."""

    def fork(self) -> Self:
        return Model.fork(self)


@on_loop
async def test_the_runs_of_a_group_draw_for_themselves() -> None:
    job = await played("reach", RobotAgent(RandomActions(chunk=8)), slugs=["reach-hard-0"], group=4)
    assert len({run.reward for run in job.runs}) > 1


@on_loop
async def test_a_group_is_graded_alike_however_many_arms_there_are() -> None:
    rewards = []
    for num_envs in (1, 4):
        job = await played("reach", RobotAgent(_Same(chunk=8)), slugs=["reach-hard-0"], group=4, num_envs=num_envs)
        rewards.append([run.reward for run in job.runs])
    assert rewards[0] == rewards[1]
    assert len(set(rewards[0])) == 1
    assert 0.0 < (rewards[0][0] or 0.0) < 1.0


@on_loop
async def test_who_gets_half_way_is_paid_for_it_and_more_for_more() -> None:
    rewards = []
    for max_steps in (20, 80, 100):
        job = await played("lift", RobotAgent(Scripted(), max_steps=max_steps), slugs=["lift-easy-0"])
        (run,) = job.runs
        assert (run.end, run.verdict) == ("max_steps", Verdict.partial)
        assert run.grade is not None
        assert run.grade.info["end"] == "max_steps"
        rewards.append(run.reward or 0.0)
    assert 0.0 < rewards[0] < rewards[1] < rewards[2] < 1.0


class Breaks(Scripted):
    """Fails once it has got somewhere."""

    def infer(self, batch: Any) -> Array:
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls > 2:
            raise RuntimeError("out of memory")
        return super().infer(batch)


@on_loop
async def test_a_policy_that_breaks_gets_a_valid_zero_and_is_named() -> None:
    job = await played("lift", RobotAgent(Breaks()), slugs=["lift-easy-0"])
    (run,) = job.runs
    assert (run.reward, run.verdict, run.end) == (0.0, Verdict.failed, "error")
    assert run.error is not None
    assert "RuntimeError: out of memory" in run.error
    assert "test_arm_tasks.py" in run.error


class Slow(Hold):
    """Takes more time than there is."""

    def infer(self, batch: Any) -> Array:
        time.sleep(0.05)
        return super().infer(batch)


@on_loop
async def test_an_agent_whose_time_is_up_is_graded_as_it_stands() -> None:
    job = await played("reach", RobotAgent(Slow()), slugs=["reach-easy-0"], timeout=1.0)
    (run,) = job.runs
    assert (run.end, run.verdict, run.reward) == ("timeout", Verdict.failed, 0.0)
    assert run.grade is not None
    assert run.grade.info["end"] == "max_steps"


@on_loop
async def test_a_simulator_that_is_killed_is_an_error_and_no_score() -> None:
    environment, _ = ALL["push"]

    async def unlucky(run: Run) -> None:
        playing = asyncio.create_task(RobotAgent(Slow())(run))
        await asyncio.sleep(0.3)
        os.kill(environment._attached["robot"].bridge._world._process._popen.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        await playing

    job = await played("push", unlucky, slugs=["push-easy-0"])
    (run,) = job.runs
    assert run.end == "lost"
    assert run.verdict is not None
    assert not run.verdict.valid
    assert run.reward is None
    assert run.error is not None
    assert "sim" in run.error


@on_loop
async def test_a_row_of_json_runs_with_the_file_that_declares_them_alone() -> None:
    runtime = LocalRuntime(Path(arm.__file__), settings=BLIND)
    tasks = Taskset("one", [Task(env="arm-reach", id="reach", args={"seed": 1})])
    job = await tasks.run(RobotAgent(Scripted()), runtime=runtime, runs=None)
    assert job.reward == 1.0


def record(end: End, **more: Any) -> dict[str, Any]:
    made = lost_record("t", 0, 0, "go", end=end, message="as it says")
    return {**made, "info": {"reached": 1.0, "grasped": 1.0, "lifted": 0.5, "held": 0.0}, **more}


def test_a_record_is_graded_by_its_parts_unless_the_policy_or_nobody_broke_it_off() -> None:
    weights = arm.WEIGHTS["lift"]
    whole = arm.graded(record(End("truncated")), weights)
    assert isinstance(whole, EvaluationResult)
    assert whole.reward == pytest.approx(0.55)
    broken = arm.graded(record(End("aborted", "sim_diverged")), weights)
    assert isinstance(broken, EvaluationResult)
    assert (broken.reward, broken.subscores) == (0.0, None)
    lost = record(End("aborted", "sim_hung"))
    assert arm.graded(lost, weights) is lost


def test_a_run_is_all_that_a_robots_agent_needs() -> None:
    run: RobotRun = Run(arm.lift_tasks["lift-easy-0"], job_id="j", run_id="j-0")
    assert run.end is None
    agent: Agent = RobotAgent(Scripted())
    assert callable(agent)
    assert isinstance(arm.lift_env, Environment)
