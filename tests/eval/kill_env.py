"""An environment whose processes are killed: short episodes of a card, and a file that says which runs were graded."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator
from typing import Any

from hudsim.environment import Environment, Task
from hudsim.eval import Run, Taskset
from hudsim.graders import EvaluationResult
from hudsim.policies.hold import Hold
from hudsim.robot.agent import RobotAgent
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec

TASKS = 8

env = Environment("killed", settings={"graded": os.devnull, "slots": 2, "ticks": 20})

card = env.robot(
    lambda settings: RobotEndpoint.spawn(
        WorldSpec(
            "hudsim.bridges.testcard:TestCardVectorBridge",
            {"width": 16, "height": 16, "cameras": 1, "state": 4, "max_ticks": settings["ticks"]},
        ),
        num_envs=settings["slots"],
    )
)


@env.template()
async def play(seed: int) -> AsyncGenerator[Any, Any]:
    """An episode to its end. The answer is the run's id; the reward how much of the episode there was."""
    episode = await card.reset(seed=seed)
    run = yield episode["prompt"]
    record = await card.result()
    nonce = secrets.token_hex(8)
    with open(env.settings["graded"], "ab", buffering=0) as graded:  # noqa: PTH123, ASYNC230 - one write, one line
        graded.write(f"{run} {nonce}\n".encode())
    if record["is_error"]:
        yield record
    else:
        yield EvaluationResult(reward=record["ticks"] / env.settings["ticks"], info={"nonce": nonce})


def _numbered(seed: int) -> Task:
    task = play(seed)
    task.slug = f"card-{seed}"
    return task


tasks = Taskset("killed", [_numbered(seed) for seed in range(TASKS)])


async def player(run: Run) -> None:
    """Holds still, and answers with the run's id."""
    run.trace.content = run.id
    await RobotAgent(Hold())(run)
