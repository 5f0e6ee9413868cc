from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.bridges.pendulum import PendulumBridge
from hudsim.bridges.rendering import gl_available
from hudsim.errors import UsageError
from hudsim.testing import BridgeConformance

_PUSH = np.full((1, 1), 3.0, np.float32)
_STILL = np.zeros((1, 1), np.float32)


def test_the_start_is_a_function_of_the_seed() -> None:
    bridge = PendulumBridge(cameras=False)
    starts = []
    for seed in (4, 5, 4):
        bridge.reset(seed=seed)
        starts.append(bridge.get_observation().data["observation/state"][0].tolist())
        bridge.step(_PUSH)
    assert starts[0] == starts[2] != starts[1]
    assert max(map(abs, starts[0])) <= 0.05


def test_left_alone_the_pole_falls_and_that_is_a_termination_without_success() -> None:
    bridge = PendulumBridge(cameras=False)
    bridge.reset(seed=0)
    total, ticks = 0.0, 0
    while True:
        ticks += 1
        assert ticks < 200
        bridge.step(_STILL)
        shown = bridge.get_observation()
        assert shown.terminated is not None
        assert shown.reward is not None
        total += shown.reward[0]
        if shown.terminated[0]:
            break
    assert total == ticks - 1
    assert shown.success is not None
    assert not shown.success[0]
    assert not bool(np.any(shown.truncated))


def test_up_at_the_last_tick_is_success_and_the_time_limit_is_truncation() -> None:
    bridge = PendulumBridge(cameras=False, max_ticks=3, spread=0.0)
    bridge.reset(seed=0)
    seen = []
    for _ in range(3):
        bridge.step(_STILL)
        shown = bridge.get_observation()
        assert shown.success is not None
        assert shown.truncated is not None
        seen.append((bool(shown.success[0]), bool(shown.truncated[0])))
    assert seen == [(False, False), (False, False), (True, True)]


def test_its_capability_names_model_and_cost() -> None:
    params = PendulumBridge(cameras=False).capability_params()
    assert params["cost"] == "inverted_pendulum"
    assert params["model"].startswith("<mujoco")


def test_a_start_beyond_falling_is_refused() -> None:
    with pytest.raises(UsageError, match=r"spread 0\.5"):
        PendulumBridge(spread=0.5, cameras=False)


class TestConformance(BridgeConformance):
    def make_bridge(self, **options: Any) -> PendulumBridge:
        return PendulumBridge(cameras=gl_available(), width=64, height=64, max_ticks=30, **options)
