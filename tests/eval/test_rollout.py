"""One run: how the agent ended and what the grade is are two things, and nothing that breaks is taken for the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hudsim.environment import Environment, Task
from hudsim.errors import EnvironmentFailed, LinkLost, PolicyDeadline, SimFailed, UsageError
from hudsim.eval import Agent, Limits, LocalRuntime, Provider, Run, Runtime, Verdict, rollout
from hudsim.graders import EvaluationResult
from tests.asyncrun import on_loop

NO_LIMIT = Limits()


def world() -> Environment:
    """``echo`` pays for the answer "yes"; the others break where their names say."""
    env = Environment("world")

    @env.template()
    async def echo() -> AsyncGenerator[Any, Any]:
        answer = yield "say yes"
        yield float(answer == "yes")

    @env.template()
    async def raises(phase: str) -> AsyncGenerator[Any, Any]:
        if phase == "start":
            raise KeyError("key")
        yield "go"
        raise SimFailed("the arm fell off") if phase == "sim" else KeyError("key")

    @env.template()
    async def hangs(phase: str) -> AsyncGenerator[Any, Any]:
        if phase == "start":
            await asyncio.sleep(60)
        yield "go"
        if phase == "grade":
            await asyncio.sleep(60)
        yield 1.0

    @env.template()
    async def says(verdict: str, reward: float = 0.0, is_error: bool = False) -> AsyncGenerator[Any, Any]:
        yield "go"
        yield EvaluationResult(reward=reward, verdict=Verdict(verdict), isError=is_error, content="evidence")

    return env


async def ran(
    agent: Agent,
    template: str = "echo",
    args: dict[str, Any] | None = None,
    *,
    limits: Limits = NO_LIMIT,
    provider: Provider | None = None,
    config: dict[str, Any] | None = None,
) -> Run:
    task = Task(env="world", id=template, args=args or {}, agent_config=config)
    run = Run(task, job_id="job", run_id="job-0")
    if provider is not None:
        await rollout(run, agent, provider, limits)
    else:
        async with LocalRuntime(world()) as here:
            await rollout(run, agent, here, limits)
    return run


async def yes(run: Run) -> None:
    run.trace.content = "yes"


async def idle(run: Run) -> None:
    return


async def sleeper(run: Run) -> None:
    run.trace.content = "yes"
    await asyncio.sleep(60)


@on_loop
async def test_an_agent_that_returns_is_done_and_graded() -> None:
    run = await ran(yes)
    assert (run.end, run.verdict, run.reward, run.error) == ("done", Verdict.passed, 1.0, None)
    assert run.prompt == "say yes"
    assert [step.source for step in run.trace.steps] == ["task", "user", "task"]
    assert run.seconds > 0


@on_loop
async def test_an_agent_that_does_nothing_fails() -> None:
    run = await ran(idle)
    assert (run.end, run.verdict, run.reward) == ("done", Verdict.failed, 0.0)


@on_loop
async def test_an_agent_that_raises_is_graded_as_it_stands_and_says_where() -> None:
    async def agent(run: Run) -> None:
        run.trace.content = "yes"
        raise KeyError("teapot")

    run = await ran(agent)
    assert (run.end, run.verdict, run.reward) == ("error", Verdict.passed, 1.0)
    assert run.error is not None
    assert "the agent raised KeyError: 'teapot'" in run.error
    assert "test_rollout.py:" in run.error
    assert "in agent" in run.error


@pytest.mark.parametrize("leaving", [SystemExit(3), asyncio.CancelledError()])
@on_loop
async def test_an_agent_that_leaves_is_one_that_raised(leaving: BaseException) -> None:
    async def agent(run: Run) -> None:
        raise leaving

    run = await ran(agent)
    assert run.end == "error"
    assert run.verdict is Verdict.failed


@on_loop
async def test_an_agent_whose_time_is_up_is_graded_as_it_stands() -> None:
    run = await ran(sleeper, limits=Limits(agent_s=0.05))
    assert (run.end, run.verdict, run.reward) == ("timeout", Verdict.passed, 1.0)
    assert run.error == "the agent was stopped after 0.05 s"


@on_loop
async def test_a_task_may_ask_for_another_time() -> None:
    run = await ran(sleeper, limits=Limits(agent_s=60), config={"timeout_seconds": 0.05})
    assert run.end == "timeout"


@on_loop
async def test_an_agent_that_holds_on_when_it_is_stopped_is_left_behind_and_graded() -> None:
    let_go = asyncio.Event()

    async def agent(run: Run) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    run = await ran(agent, limits=Limits(agent_s=0.05))
    assert (run.end, run.verdict) == ("timeout", Verdict.failed)
    let_go.set()


@pytest.mark.parametrize("error", [LinkLost("gone"), SimFailed("it died")])
@on_loop
async def test_what_the_agent_worked_on_being_lost_is_no_fault_of_its_own(error: Exception) -> None:
    async def agent(run: Run) -> None:
        raise error

    assert (await ran(agent)).end == "lost"


@on_loop
async def test_a_policy_that_misses_its_deadline_is_at_fault() -> None:
    async def agent(run: Run) -> None:
        raise PolicyDeadline("no action in time")

    assert (await ran(agent)).end == "error"


@on_loop
async def test_an_agent_that_feigns_a_lost_link_does_not_erase_its_loss() -> None:
    async def agent(run: Run) -> None:
        raise LinkLost("the dog ate it")

    run = await ran(agent)
    assert (run.verdict, run.reward) == (Verdict.failed, 0.0)


@on_loop
async def test_a_world_that_died_is_an_error_and_no_zero() -> None:
    run = await ran(idle, "raises", {"phase": "sim"})
    assert (run.verdict, run.reward) == (Verdict.infra_error, None)
    assert "the arm fell off" in str(run.error)


@on_loop
async def test_a_grader_that_raises_is_an_error_and_no_zero() -> None:
    run = await ran(idle, "raises", {"phase": "grade"})
    assert (run.end, run.verdict, run.reward) == ("done", Verdict.grader_error, None)
    assert "world/raises raised KeyError" in str(run.error)


@on_loop
async def test_a_template_that_raises_at_its_start_is_an_error_and_the_agent_never_began() -> None:
    run = await ran(yes, "raises", {"phase": "start"})
    assert (run.end, run.verdict) == (None, Verdict.infra_error)


@on_loop
async def test_a_hang_in_grading_is_a_zero_that_counts() -> None:
    run = await ran(idle, "hangs", {"phase": "grade"}, limits=Limits(grade_s=0.05))
    assert (run.verdict, run.reward) == (Verdict.grade_timeout, 0.0)


@on_loop
async def test_a_start_that_takes_too_long_is_an_error() -> None:
    run = await ran(idle, "hangs", {"phase": "start"}, limits=Limits(start_s=0.05))
    assert (run.verdict, run.reward) == (Verdict.infra_error, None)
    assert "not started within 0.05 s" in str(run.error)


@pytest.mark.parametrize(
    ("agent", "template", "verdict", "phase"),
    [
        (idle, "start", Verdict.infra_error, "starting the task"),
        (sleeper, "never", Verdict.grade_timeout, "the agent's work"),
        (idle, "grade", Verdict.grade_timeout, "grading"),
    ],
)
@on_loop
async def test_a_whole_runs_time_counts_against_whoever_used_it(
    agent: Agent, template: str, verdict: Verdict, phase: str
) -> None:
    run = await ran(agent, "hangs", {"phase": template}, limits=Limits(rollout_s=0.2))
    assert run.verdict is verdict
    assert f"the run's 0.2 s were up during {phase}" in str(run.error)


@pytest.mark.parametrize(
    ("verdict", "is_error", "reward"),
    [("tampered", False, 0.0), ("resource_limit", False, 0.0), ("grader_error", True, None)],
)
@on_loop
async def test_a_grader_with_evidence_has_the_last_word(verdict: str, is_error: bool, reward: float | None) -> None:
    run = await ran(yes, "says", {"verdict": verdict, "is_error": is_error})
    assert (run.verdict, run.reward) == (Verdict(verdict), reward)


@on_loop
async def test_an_environment_that_does_not_come_up_is_an_error() -> None:
    async def nowhere() -> None:
        raise EnvironmentFailed("no such machine")

    @asynccontextmanager
    async def provider(task: Task) -> AsyncIterator[Runtime]:
        await nowhere()
        yield Runtime("ws://nowhere/")

    run = await ran(idle, provider=provider)
    assert (run.end, run.verdict) == (None, Verdict.infra_error)
    assert run.error == "[provisioning] no such machine"


@on_loop
async def test_a_port_where_nobody_listens_is_an_error_that_names_it() -> None:
    run = await ran(idle, provider=Runtime("ws://127.0.0.1:9/"))
    assert run.verdict is Verdict.infra_error
    assert "127.0.0.1:9: connection refused" in str(run.error)


@on_loop
async def test_a_cancelled_run_says_so_and_its_task_is_ended() -> None:
    env = world()
    closed = asyncio.Event()

    @env.template()
    async def long() -> AsyncGenerator[Any, Any]:
        try:
            yield "go"
            yield 1.0
        finally:
            closed.set()

    run = Run(long(), job_id="job", run_id="job-0")
    async with LocalRuntime(env) as here:
        rolling = asyncio.create_task(rollout(run, sleeper, here, NO_LIMIT))
        while run.prompt is None:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
        rolling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rolling
        assert closed.is_set()
    assert (run.verdict, run.reward) == (Verdict.cancelled, None)


@on_loop
async def test_an_agent_cannot_use_a_run_that_is_over() -> None:
    run = await ran(yes)
    with pytest.raises(Exception, match="is not live"):
        await run.reference()


@pytest.mark.parametrize("seconds", [0, -1, True, float("inf"), float("nan"), "5"])
def test_a_limit_is_seconds_above_zero(seconds: Any) -> None:
    with pytest.raises(UsageError, match="expected seconds above 0"):
        Limits(agent_s=seconds)


def test_an_agents_time_is_within_its_runs() -> None:
    with pytest.raises(UsageError, match="never graded"):
        Limits(agent_s=5, rollout_s=5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(object(), "no plain JSON"), (b"bytes", "no plain JSON"), ("x" * (17 << 20), "longer than 16 MiB")],
)
@on_loop
async def test_an_answer_that_cannot_be_sent_is_none_and_the_agents_own_doing(answer: Any, words: str) -> None:
    async def agent(run: Run) -> None:
        run.trace.content = answer

    run = await ran(agent)
    assert (run.end, run.verdict, run.reward) == ("error", Verdict.failed, 0.0)
    assert words in str(run.error)


@on_loop
async def test_an_agent_that_works_on_what_is_not_served_is_a_mistake_and_no_zero() -> None:
    from hudsim.policies.hold import Hold
    from hudsim.robot.agent import RobotAgent

    run = await ran(RobotAgent(Hold()))
    assert (run.end, run.verdict) == (None, Verdict.infra_error)
    assert "works on hudsim/1 or openpi/0; the environment serves nothing" in str(run.error)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_step": 3}, "no key of the agent_config of task echo 'max_step'; did you mean 'max_steps'"),
        ({"timeout_seconds": "5"}, "agent_config of task echo: timeout_seconds: .*expected seconds"),
        ({"timeout_seconds": 50}, "agent_config of task echo: .*expected less for the agent"),
    ],
)
def test_what_a_task_asks_of_the_agent_is_checked_beforehand(config: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Limits(rollout_s=20).of(Task(env="world", id="echo", agent_config=config))
