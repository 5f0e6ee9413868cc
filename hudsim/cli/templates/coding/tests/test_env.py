"""The tasks can be solved, and nothing is paid for nothing."""

import asyncio
from pathlib import Path

from hudsim import LocalRuntime, Taskset
from hudsim.agents import Noop, Oracle

ENV = Path(__file__).parents[1] / "env.py"


def reward_of(agent) -> float | None:
    tasks = Taskset.from_file(ENV)
    runtime = LocalRuntime(ENV, reveal=True)
    job = asyncio.run(tasks.run(agent, runtime=runtime, runs=None))
    assert job.complete, [run.error for run in job.runs]
    return job.reward


def test_an_agent_that_does_nothing_is_paid_nothing():
    assert reward_of(Noop()) == 0.0


def test_the_solutions_are_right():
    assert reward_of(Oracle()) == 1.0
