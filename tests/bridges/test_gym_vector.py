from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from hudsim.bridges.gym_env import GymBridge
from hudsim.bridges.gym_vector import GymBatchBridge, GymVectorBridge
from hudsim.bridges.rendering import gl_available, gl_problem
from hudsim.errors import UsageError
from hudsim.testing import BridgeConformance

_MODES = list(AutoresetMode)


class Painter(gym.Env[Any, Any]):
    """Paints its number and its step into one buffer; over after ``length`` steps, a success then."""

    def __init__(self, number: int, length: int = 3) -> None:
        self.observation_space = spaces.Box(0, 255, (16, 16, 3), np.uint8)
        self.action_space = spaces.Box(-1, 1, (2,))
        self.number, self.length, self.count = number, length, 0
        self._image = np.zeros((16, 16, 3), np.uint8)

    def _look(self) -> Any:
        self._image[:] = (self.number, self.count, self.start)
        return self._image

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        self.start = int(self.np_random.integers(256))
        return self._look(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        over = self.count == self.length
        return self._look(), float(self.count), over, False, {"is_success": over}


def _makers(lengths: tuple[int, ...]) -> list[Any]:
    return [partial(Painter, number, length) for number, length in enumerate(lengths)]


def _numbers(bridge: Any) -> list[list[int]]:
    """(painter, step) of each slot's frame."""
    images = bridge.get_observation().data["observation/image"]
    return [image[0, 0, :2].tolist() for image in images]


def _truth(flags: Any) -> list[bool]:
    assert flags is not None
    return [bool(flag) for flag in flags]


@pytest.mark.parametrize("mode", _MODES)
def test_the_slots_of_a_sync_vector_are_worlds_of_their_own_in_every_autoreset_mode(mode: AutoresetMode) -> None:
    bridge = GymVectorBridge(SyncVectorEnv(_makers((3, 3, 3)), copy=False, autoreset_mode=mode))
    assert bridge.num_envs == 3
    bridge.reset([0, 1, 2], [1, 2, 3])
    still = np.zeros((3, 2), np.float32)
    for _ in range(2):
        bridge.step(still, np.array([True, False, True]))
    bridge.step(still, np.array([True, False, False]))
    assert _numbers(bridge) == [[0, 3], [1, 0], [2, 2]]
    last = bridge.get_observation()
    assert _truth(last.terminated) == [True, False, False]
    assert _truth(last.success) == [True, False, False]
    bridge.step(still, np.array([False, True, True]))
    assert _numbers(bridge) == [[0, 3], [1, 1], [2, 3]]
    bridge.reset([0], [1])
    assert _numbers(bridge) == [[0, 0], [1, 1], [2, 3]]
    assert int(last.data["observation/image"][0, 0, 0, 1]) == 3
    bridge.step(still, np.array([True, False, False]))
    assert _numbers(bridge) == [[0, 1], [1, 1], [2, 3]]


def test_a_slot_plays_as_it_would_alone() -> None:
    alone = GymBridge("Ant-v5")
    together = GymVectorBridge("Ant-v5", num_envs=2)
    alone.reset(seed=8)
    together.reset([0, 1], [3, 8])
    rng = np.random.default_rng(0)
    for tick in range(6):
        action = rng.uniform(-1, 1, (2, 8)).astype(np.float32)
        alone.step(action[1:])
        together.step(action, np.array([tick % 2 == 0, True]))
    state = together.get_observation().data["observation/state"]
    assert np.array_equal(alone.get_observation().data["observation/state"][0], state[1])
    alone.close()
    together.close()


@pytest.mark.skipif(not gl_available(), reason=str(gl_problem()))
def test_each_slots_camera_shows_its_own_world() -> None:
    together = GymVectorBridge("HalfCheetah-v5", num_envs=3, camera=True, width=96, height=64)
    together.reset([0, 1, 2], [4, 5, 6])
    before = together.get_observation().data["observation/camera"]
    for slot, seed in enumerate([4, 5, 6]):
        alone = GymBridge("HalfCheetah-v5", camera=True, width=96, height=64)
        alone.reset(seed=seed)
        assert np.array_equal(alone.get_observation().data["observation/camera"][0], before[slot])
        alone.close()
    together.step(np.ones((3, 6), np.float32), np.array([False, True, False]))
    after = together.get_observation().data["observation/camera"]
    assert [np.array_equal(before[slot], after[slot]) for slot in range(3)] == [True, False, True]
    together.close()


def test_a_slot_that_none_has_claimed_shows_something_valid() -> None:
    bridge = GymVectorBridge(SyncVectorEnv(_makers((3, 3))))
    bridge.reset([1], [1])
    assert _numbers(bridge) == [[0, 0], [1, 0]]


def test_a_vector_that_steps_only_as_a_whole_is_refused_with_the_way_out() -> None:
    vec = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    with pytest.raises(UsageError, match=r"CartPoleVectorEnv steps all of its worlds at once.*GymBatchBridge"):
        GymVectorBridge(vec)
    with pytest.raises(UsageError, match=r"vector environment \(CartPoleVectorEnv\); GymVectorBridge"):
        GymBridge(vec)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="num_envs 3, but the vector environment has 2"):
        GymVectorBridge(SyncVectorEnv(_makers((3, 3))), num_envs=3)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((SyncVectorEnv, mode) for mode in _MODES),
        *((AsyncVectorEnv, mode) for mode in _MODES if mode is not AutoresetMode.SAME_STEP),
    ],
)
def test_a_batch_keeps_each_true_last_frame_and_counts_no_step_after_it(kind: Any, mode: AutoresetMode) -> None:
    bridge = GymBatchBridge(kind(_makers((2, 4)), copy=False, autoreset_mode=mode))
    rewards = np.zeros(2)
    for _ in range(2):
        bridge.reset(seed=5)
        starts = bridge.get_observation().data["observation/image"][:, 0, 0, 2].tolist()
        rewards[:] = 0
        ends = []
        shown = bridge.get_observation()
        for _ in range(4):
            bridge.step(np.zeros((2, 2), np.float32))
            shown = bridge.get_observation()
            assert shown.reward is not None
            rewards += shown.reward
            ends.append(_truth(shown.terminated))
        assert ends == [[False, False], [True, False], [True, False], [True, True]]
        assert _numbers(bridge) == [[0, 2], [1, 4]]
        assert shown.data["observation/image"][:, 0, 0, 2].tolist() == starts
        assert rewards.tolist() == [3.0, 10.0]
        assert _truth(shown.success) == [True, True]
    bridge.close()


def test_a_batch_is_made_by_id_and_runs_at_its_rate() -> None:
    bridge = GymBatchBridge("CartPole-v1", num_envs=3, make_args={"vectorization_mode": "vector_entry_point"})
    assert (bridge.num_envs, bridge.contract.control_rate) == (3, 50)
    bridge.reset(seed=0)
    checks = bridge.contract.compile()
    bridge.step(np.array([0, 1, 0]))
    shown = bridge.get_observation().data
    for slot in range(3):
        checks.observation({name: array[slot] for name, array in shown.items()})
    bridge.close()


def test_a_batch_that_does_not_tell_its_autoreset_mode_is_refused() -> None:
    vec = SyncVectorEnv(_makers((3, 3)))
    vec.metadata = {}
    with pytest.raises(UsageError, match=r"autoreset_mode'\] is None, expected one of AutoresetMode\.NEXT_STEP"):
        GymBatchBridge(vec)


def test_workers_that_reset_in_the_same_step_are_refused_for_they_may_lose_the_last_frame() -> None:
    vec = AsyncVectorEnv(_makers((3, 3)), autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(UsageError, match=r"SAME_STEP can lose last observations; expected NEXT_STEP or DISABLED"):
        GymBatchBridge(vec)
    vec.close()


class TestConformance(BridgeConformance):
    def make_bridge(self, num_envs: int = 3, **options: Any) -> GymVectorBridge:
        return GymVectorBridge("CartPole-v1", num_envs=num_envs, **options)
