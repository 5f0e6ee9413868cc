"""The environments ``arm-reach``, ``arm-lift`` and ``arm-push``: the arm's tasks, from easy to hard, graded by steps.

Settings: ``cameras`` (whether there are images; False spares the rendering) and ``num_envs`` (arms in one simulator,
so many runs at once).
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from hudsim.bridges.arm.bridge import ArmBridge
from hudsim.bridges.arm.goals import DIFFICULTIES
from hudsim.environment import Attached, Environment, Template
from hudsim.eval import Taskset
from hudsim.graders import EvaluationResult, SubScore
from hudsim.robot.cadence import Cadence
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import Serving

__all__ = ["WEIGHTS", "graded", "lift", "lift_tasks", "push", "push_tasks", "reach", "reach_tasks"]

Difficulty = Literal["easy", "medium", "hard"]
Seed = Annotated[int, Field(ge=0)]
Yields = AsyncGenerator[Any, Any]

WEIGHTS = {
    "reach": {"reached": 0.5, "held": 0.5},
    "lift": {"reached": 0.2, "grasped": 0.2, "lifted": 0.3, "held": 0.3},
    "push": {"reached": 0.2, "pushed": 0.5, "held": 0.3},
}
"""What each part is worth. Each pays as soon as it is begun, so that the runs of a group differ while none succeeds;
getting to the cube pays less than what is done with it, so that no policy does well by hovering there; and without
the whole hold there is no 1."""

_SEEDS = (0, 1)
_TOLD = ("end", "ticks", "success", "total_reward", "clipped", "message")


def graded(record: Mapping[str, Any], weights: Mapping[str, float]) -> EvaluationResult | Mapping[str, Any]:
    """The grade of an episode's record: its parts by weight, 1.0 exactly where success held for 0.2 s.

    An episode that the policy broke off (it raised, gave no action in time, broke the physics) is worth 0, whatever
    it had done. Any other error is nobody's verdict: the record is given back as it is.
    """
    if record["is_error"]:
        return record
    info = {name: record[name] for name in _TOLD if record[name] is not None}
    info["cadence"] = Cadence.from_json(record["cadence"]).summary()
    words = f"{record['end']} after {record['ticks']} ticks"
    if record["end"].startswith("aborted"):
        return EvaluationResult(reward=0.0, content=f"{words}: {record['message']}", info=info)
    parts = [SubScore(name=name, weight=weight, value=record["info"][name]) for name, weight in weights.items()]
    reward = math.fsum(part.weight * part.value for part in parts)
    return EvaluationResult(reward=reward, content=words, info=info, subscores=parts)


def _environment(task: str) -> tuple[Environment, Attached]:
    """An environment with the arm at ``task`` as its robot."""

    def endpoint(settings: Mapping[str, Any]) -> RobotEndpoint:
        serving = Serving(num_envs=settings["num_envs"])
        return RobotEndpoint(ArmBridge, serving=serving, task=task, privileged=True, cameras=settings["cameras"])

    environment = Environment(f"arm-{task}", settings={"cameras": True, "num_envs": 1})
    return environment, environment.robot(endpoint)


def _by_script(difficulty: Difficulty = "easy", seed: Seed = 0) -> dict[str, Any]:
    return {"policy": "scripted"}


def _taskset(template: Template[Any]) -> Taskset:
    """Each difficulty with each seed."""
    tasks = []
    for difficulty in DIFFICULTIES:
        for seed in _SEEDS:
            task = template(difficulty=difficulty, seed=seed)
            task.slug = f"{template.id}-{difficulty}-{seed}"
            task.columns = {"difficulty": difficulty, "seed": seed}
            tasks.append(task)
    return Taskset(template.environment.name, tasks)


reach_env, _reach_arm = _environment("reach")
lift_env, _lift_arm = _environment("lift")
push_env, _push_arm = _environment("push")


@reach_env.template(id="reach")
async def reach(difficulty: Difficulty = "easy", seed: Seed = 0) -> Yields:
    """Bring the tip to within 2 cm of a marker in the air, and keep it there for 0.2 s."""
    episode = await _reach_arm.reset(seed=seed, difficulty=difficulty)
    yield episode["prompt"]
    yield graded(await _reach_arm.result(), WEIGHTS["reach"])


@lift_env.template(id="lift")
async def lift(difficulty: Difficulty = "easy", seed: Seed = 0) -> Yields:
    """Pick up a cube, and hold it 10 cm above the table for 0.2 s."""
    episode = await _lift_arm.reset(seed=seed, difficulty=difficulty)
    yield episode["prompt"]
    yield graded(await _lift_arm.result(), WEIGHTS["lift"])


@push_env.template(id="push")
async def push(difficulty: Difficulty = "easy", seed: Seed = 0) -> Yields:
    """Push a cube to within 3 cm of a disc's middle, where it must be for 0.2 s."""
    episode = await _push_arm.reset(seed=seed, difficulty=difficulty)
    yield episode["prompt"]
    yield graded(await _push_arm.result(), WEIGHTS["push"])


reach.reference(_by_script)
lift.reference(_by_script)
push.reference(_by_script)

reach_tasks = _taskset(reach)
lift_tasks = _taskset(lift)
push_tasks = _taskset(push)
