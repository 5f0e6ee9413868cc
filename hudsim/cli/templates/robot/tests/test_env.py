"""The tasks can be solved, and nothing is paid for nothing."""

import asyncio
from pathlib import Path

from hudsim import LocalRuntime, Taskset, registry

ENV = Path(__file__).parents[1] / "env.py"


def reward_of(name: str) -> float | None:
    tasks = Taskset.from_file(ENV)
    runtime = LocalRuntime(ENV, reveal=True)
    job = asyncio.run(tasks.run(registry.agent(name), runtime=runtime, runs=None))
    assert job.complete, [run.error for run in job.runs]
    return job.reward


def test_an_agent_that_does_nothing_is_paid_nothing():
    assert reward_of("noop") == 0.0


def test_a_policy_that_stays_where_it_is_does_not_solve_them():
    reward = reward_of("hold")
    assert reward is not None
    assert reward < 0.5


def test_the_references_solve_them():
    assert reward_of("oracle") == 1.0
