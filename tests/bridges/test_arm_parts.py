"""How far each step of the arm's tasks got: partial credit that the record of an episode carries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.arm import ArmBridge
from hudsim.bridges.arm.goals import GOALS, Scene
from hudsim.bridges.arm.world import HALF
from hudsim.policies.hold import Hold
from hudsim.policies.random_actions import RandomActions
from hudsim.policies.scripted import Scripted
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.model import Model
from tests.asyncrun import on_loop

PARTS = {
    "reach": ["reached", "held"],
    "lift": ["reached", "grasped", "lifted", "held"],
    "push": ["reached", "pushed", "held"],
}
TASKS = list(PARTS)

Parts = dict[str, float]


def arm(task: str, **options: Any) -> ArmBridge:
    return ArmBridge(task, **{"cameras": False, "privileged": True, **options})


def bound(bridge: ArmBridge, policy: Model) -> Callable[[], Array]:
    """The policy's next chunk [T, 8] for slot 0."""
    policy.bind(bridge.contract, bridge.capability_params())
    return lambda: policy.infer({name: array[:1] for name, array in bridge.get_observation().data.items()})[0]


def episode(bridge: ArmBridge, policy: Model, *, seed: int = 0, difficulty: str = "medium") -> list[Parts]:
    """The parts at the start and after each tick of an episode."""
    plan, on = bound(bridge, policy), np.array([True])
    bridge.reset([0], [seed], difficulty=difficulty)
    seen = [bridge.results(0)]
    while True:
        for action in plan():
            bridge.step(action[np.newaxis], on)
            seen.append(bridge.results(0))
            observation = bridge.get_observation()
            assert observation.terminated is not None
            assert observation.truncated is not None
            if observation.terminated[0] or observation.truncated[0]:
                return seen


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_an_expert_does_all_of_them_before_the_hold_says_so(task: str, difficulty: str) -> None:
    *before, last = episode(arm(task), Scripted(), seed=2, difficulty=difficulty)
    assert list(last) == PARTS[task]
    assert set(last.values()) == {1.0}
    assert [before[-1][name] for name in PARTS[task][:-1]] == [1.0] * (len(last) - 1)
    assert before[-1]["held"] == pytest.approx(0.9)


@pytest.mark.parametrize("task", TASKS)
def test_who_stays_where_it_is_has_done_none(task: str) -> None:
    last = episode(arm(task, max_ticks=100), Hold())[-1]
    assert list(last) == PARTS[task]
    assert set(last.values()) == {0.0}


@pytest.mark.parametrize("task", TASKS)
def test_no_part_ever_gets_less_and_all_stay_within_0_and_1(task: str) -> None:
    for policy in (Scripted(), RandomActions(seed=3)):
        seen = episode(arm(task, max_ticks=150), policy)
        assert set(seen[0].values()) == {0.0}
        for earlier, later in pairwise(seen):
            assert all(0.0 <= earlier[name] <= later[name] <= 1.0 for name in PARTS[task])
        assert all(type(value) is float for value in seen[-1].values())


@pytest.mark.parametrize("task", TASKS)
def test_a_slots_parts_are_the_same_whatever_the_others_do(task: str) -> None:
    alone, crowd = arm(task), arm(task, num_envs=4)
    crowd.reset([0, 1, 3], [7, 8, 9])
    for bridge, slot in ((alone, 0), (crowd, 2)):
        bridge.reset([slot], [5])
    plan, others = bound(alone, Scripted()), np.random.default_rng(0)
    chunk = plan()
    for tick in range(110):
        if tick and tick % 16 == 0:
            chunk = plan()
        active = others.random(4) < 0.5
        active[2] = True
        batch = others.uniform(-3, 3, (4, 8)).astype(np.float32)
        batch[2] = chunk[tick % 16]
        if tick % 40 == 7:
            crowd.reset([3], [tick])
        crowd.step(batch, active)
        alone.step(batch[2:3], np.array([True]))
        assert alone.results(0) == crowd.results(2), tick
    assert alone.results(0)["reached"] > 0.9


def test_an_episode_begins_with_nothing_of_the_last_one() -> None:
    bridge = arm("reach")
    assert episode(bridge, Scripted())[-1]["held"] == 1.0
    bridge.reset([0], [1])
    assert bridge.results(0) == {"reached": 0.0, "held": 0.0}


def scene(**places: Any) -> Scene:
    far = {"tip": [0.4, 0.0, 0.4], "object": [0.5, 0.0, HALF], "target": [0.6, 0.2, 0.0], "touch": [0.0, 0.0]}
    return Scene(**{**far, **places})


UP = [0.5, 0.0, HALF + 0.05]


@pytest.mark.parametrize(
    ("task", "places", "parts"),
    [
        ("reach", {"tip": [0.6, 0.2, 0.019]}, {"reached": 1.0}),
        ("reach", {"tip": [0.2, -0.2, 0.6]}, {"reached": 0.0}),  # further away than it began
        ("lift", {"tip": [0.5, 0.0, HALF + 0.01]}, {"reached": 1.0, "grasped": 0.0, "lifted": 0.0}),
        ("lift", {"tip": UP, "object": UP, "touch": [1.0, 1.0]}, {"reached": 1.0, "grasped": 1.0, "lifted": 0.5}),
        ("lift", {"tip": UP, "object": UP, "touch": [1.0, 0.0]}, {"reached": 1.0, "grasped": 0.0, "lifted": 0.0}),
        ("lift", {"object": UP, "touch": [1.0, 1.0]}, {"grasped": 0.0, "lifted": 0.0}),  # knocked up by closed fingers
        ("push", {"object": [0.6, 0.171, HALF]}, {"pushed": 1.0}),
        ("push", {"object": [0.6, 0.2, HALF + 0.05]}, {"pushed": 0.0}),  # carried
        ("push", {"tip": [0.45, 0.0, HALF]}, {"reached": 1.0, "pushed": 0.0}),
    ],
)
def test_a_part_is_done_where_the_task_says(task: str, places: dict[str, Any], parts: Parts) -> None:
    done = GOALS[task].parts(scene(), scene(**places))
    assert {name: round(done[name], 9) for name in parts} == parts


def test_half_of_the_way_is_half_of_the_part() -> None:
    first = scene(tip=[0.6, 0.2, 0.42])
    assert GOALS["reach"].parts(first, scene(tip=[0.6, 0.2, 0.22])) == {"reached": pytest.approx(0.5, abs=1e-3)}
    began_there = scene(tip=[0.6, 0.2, 0.01])
    assert GOALS["reach"].parts(began_there, scene(tip=[0.6, 0.2, 0.01])) == {"reached": 1.0}
    assert GOALS["reach"].parts(began_there, scene(tip=[0.6, 0.2, 0.30])) == {"reached": 0.0}


@on_loop
async def test_the_record_carries_them_and_scores_as_ever() -> None:
    async with RobotEndpoint.inline(arm("reach")) as world:
        for max_steps, score in ((None, 1.0), (15, 0.0)):
            started = await world.reset(seed=0, difficulty="easy")
            async with await RobotClient.connect(world.capability(), token=started.token) as robot:
                agent = RobotAgent(Scripted())
                agent.bind(robot.contract, robot.params)
                await agent.play(robot, max_steps=max_steps)
            record = await world.result(started.token)
            assert record["score"] == score
            assert list(record["info"]) == PARTS["reach"]
            assert (min(record["info"].values()) == 1.0) is (score == 1.0)
            assert record["info"]["reached"] > 0.2
