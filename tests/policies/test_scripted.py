"""The scripted expert on the real arm, executed the ways that an agent executes chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hudsim.bridges.arm import ArmBridge
from hudsim.bridges.arm.world import VELOCITY_LIMITS
from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.policies.scripted import Scripted

TASKS = ["reach", "lift", "push"]
ON = np.array([True])


def pair(task: str, **options: Any) -> tuple[ArmBridge, Scripted]:
    bridge = ArmBridge(task, cameras=False, privileged=True)
    policy = Scripted(**options)
    policy.bind(bridge.contract, bridge.capability_params())
    return bridge, policy


def play(
    bridge: ArmBridge, policy: Scripted, seed: int, *, horizon: int, late: int = 0, difficulty: str = "medium"
) -> tuple[bool, NDArray[np.float32]]:
    """One episode: whether it succeeded, and the command velocities [ticks, 7] rad/s.

    Of each chunk ``horizon`` actions are executed; its successor, asked for then, comes ``late`` ticks later, while
    the old one goes on, and has its first ``late`` actions dropped.
    """
    bridge.reset([0], [seed], difficulty=difficulty)
    observation = bridge.get_observation()
    chunk = policy.infer(observation.data)[0]
    at, coming, velocities = 0, {}, []
    while True:
        if at == horizon:
            coming[at + late] = policy.infer(observation.data)[0]
        if at in coming:
            chunk, at, coming = coming[at], late, {}
        bridge.step(chunk[at][np.newaxis], ON)
        at += 1
        observation = bridge.get_observation()
        velocities.append(observation.data["observation/command_velocity"][0, :7])
        assert observation.terminated is not None
        assert observation.truncated is not None
        if observation.terminated[0] or observation.truncated[0]:
            return bool(observation.terminated[0]), np.array(velocities)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("horizon", "late"), [(16, 0), (8, 4)])
def test_it_succeeds_in_lockstep_and_with_late_chunks(task: str, horizon: int, late: int) -> None:
    bridge, policy = pair(task)
    assert [play(bridge, policy, seed, horizon=horizon, late=late)[0] for seed in range(4)] == [True] * 4


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", TASKS)
def test_it_succeeds_on_95_of_100_seeds(task: str) -> None:
    bridge, policy = pair(task)
    assert sum(play(bridge, policy, seed, horizon=16)[0] for seed in range(100)) >= 95


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", TASKS)
def test_it_succeeds_on_hard_starts_with_late_chunks(task: str) -> None:
    bridge, policy = pair(task)
    results = [play(bridge, policy, seed, horizon=10, late=5, difficulty="hard")[0] for seed in range(40)]
    assert sum(results) >= 38


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("late", [0, 5])
def test_its_commands_keep_within_the_arm_and_join_without_a_step(task: str, late: int) -> None:
    bridge, policy = pair(task)
    _, velocities = play(bridge, policy, 1, horizon=9, late=late)
    assert (np.abs(velocities) <= VELOCITY_LIMITS[:7]).all()
    jerks = np.abs(np.diff(velocities, axis=0)).max()
    assert jerks < 0.4  # rad/s from tick to tick; a splice that starts from rest costs up to 2


def test_a_chunk_made_later_goes_on_where_the_first_one_led() -> None:
    bridge, policy = pair("lift")
    bridge.reset([0], [0])
    first = policy.infer(bridge.get_observation().data)[0]
    for command in first[:6]:
        bridge.step(command[np.newaxis], ON)
    second = policy.infer(bridge.get_observation().data)[0]
    assert np.allclose(second[:10], first[6:], atol=1e-3)


def test_a_batch_is_its_rows() -> None:
    bridge = ArmBridge("push", cameras=False, privileged=True, num_envs=3)
    policy = Scripted(chunk=5)
    policy.bind(bridge.contract, bridge.capability_params())
    bridge.reset([0, 1, 2], [0, 1, 2])
    batch: dict[str, Any] = dict(bridge.get_observation().data)
    batch["prompt"] = ["push"] * 3
    chunks = policy.infer(batch)
    assert chunks.shape == (3, 5, 8)
    assert chunks.dtype == np.float32
    for i in range(3):
        row = {name: batch[name][i : i + 1] for name in batch}
        assert policy.infer(row)[0].tobytes() == chunks[i].tobytes()


def test_it_says_what_a_world_lacks() -> None:
    policy = Scripted()
    assert policy.needs_privileged
    hidden = ArmBridge("lift", cameras=False)
    with pytest.raises(UsageError, match=r"observation/object_pos.*privileged=True"):
        policy.bind(hidden.contract, hidden.capability_params())
    deltas = ArmBridge("lift", action="ee_delta", cameras=False, privileged=True)
    with pytest.raises(UsageError, match="commands joint_pos; the world takes ee_delta"):
        policy.bind(deltas.contract, deltas.capability_params())
    other = Contract.load({"schema": "hudsim/1", "features": hidden.contract.to_json()["features"]})
    with pytest.raises(UsageError, match="arm-reach, arm-lift and arm-push only"):
        policy.bind(other, {})
    with pytest.raises(UsageError, match="at least 1"):
        Scripted(chunk=0)
