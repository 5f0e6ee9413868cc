from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import Faults, TestCardBridge, TestCardVectorBridge, read_card, recognise
from hudsim.errors import SimDiverged, UsageError
from hudsim.robot.bridge import Array
from hudsim.testing import BridgeConformance


def _card(**options: Any) -> Any:
    bridge = TestCardBridge(**options)
    bridge.reset(seed=7)
    return bridge.get_observation().data["observation/camera0"][0]


def test_each_frame_says_slot_tick_seed_and_camera() -> None:
    bridge = TestCardVectorBridge(num_envs=3, width=40, height=33, first_slot=5)
    bridge.reset([0, 1, 2], [10, 11, 12])
    for _ in range(300):
        bridge.step(np.zeros((3, 5), np.float32), np.array([True, False, True]))
    data = bridge.get_observation().data
    for slot, tick in enumerate([300, 0, 300]):
        for camera in range(2):
            image = data[f"observation/camera{camera}"][slot]
            assert read_card(image) == (slot + 5, tick)
            assert TestCardBridge.read(image) == (slot + 5, tick, 10 + slot, camera)
        assert data["observation/state"][slot, :3].tolist() == [tick, slot + 5, 10 + slot]


@pytest.mark.parametrize("size", [(16, 16), (17, 61), (224, 224), (640, 480)])
def test_a_card_of_any_size_reads_back(size: tuple[int, int]) -> None:
    assert read_card(_card(width=size[0], height=size[1], slot=200)) == (200, 0)


@pytest.mark.parametrize(
    ("done", "seen"),
    [
        (lambda image: image[::-1], "upside down"),
        (lambda image: image[:, ::-1], "mirrored"),
        (lambda image: image[::-1, ::-1], "rotated by 180 degrees"),
        (lambda image: image[..., ::-1], "bgr"),
        (lambda image: image.transpose(1, 0, 2), "transposed"),
        (lambda image: image.transpose(2, 0, 1), "not a test card"),
        (np.zeros_like, "not a test card"),
    ],
)
def test_what_was_done_to_a_card_is_recognised(done: Any, seen: str) -> None:
    image = done(_card())
    assert recognise(image) == seen
    with pytest.raises(UsageError, match=seen):
        read_card(image)


def test_a_frame_mixed_from_two_is_noticed() -> None:
    bridge = TestCardBridge()
    bridge.reset(seed=1)
    torn = bridge.get_observation().data["observation/camera0"][0].copy()
    bridge.step(np.zeros((1, 5), np.float32))
    torn[:130] = bridge.get_observation().data["observation/camera0"][0][:130]
    with pytest.raises(UsageError, match="check sum"):
        read_card(torn)


def test_the_action_is_echoed_and_kept() -> None:
    bridge = TestCardBridge(state=5, cameras=0)
    bridge.reset(seed=2)
    bridge.step(np.array([[0.5, -3.0]], np.float32))
    shown = bridge.get_observation()
    assert shown.data["observation/state"].tolist() == [[1, 0, 2, 0.5, -3.0]]
    assert shown.reward is not None
    assert shown.reward.tolist() == [1.0]
    assert [action.tolist() for action in bridge.executed] == [[0.5, -3.0]]
    bridge.reset(seed=2)
    assert bridge.executed == []


def test_what_it_shows_keeps_its_contract() -> None:
    bridge = TestCardVectorBridge(num_envs=2, limit=1.0, out_of_range="clip", hold="zero")
    checks = bridge.contract.compile()
    bridge.reset([0, 1], [None, 1 << 70])
    for slot in range(2):
        checks.observation({name: array[slot] for name, array in bridge.get_observation().data.items()})
    action, clipped = checks.action(np.full(5, 2.0, np.float32))
    assert action.tolist() == [1.0] * 5
    assert clipped is not None
    assert checks.hold(action).tolist() == [0.0] * 5


def test_faults_come_at_their_tick_and_in_their_slot_alone() -> None:
    faults = Faults(nan_at=1, nan_reward_at=2, success_at=[1, 3], terminate_at=3, truncate_at=2, slot=1)
    bridge = TestCardVectorBridge(num_envs=2, cameras=0, faults=faults)
    bridge.reset([0, 1], [0, 0])
    seen = []
    for _ in range(3):
        bridge.step(np.zeros((2, 5), np.float32), np.ones(2, np.bool_))
        shown = bridge.get_observation()
        assert np.isfinite(shown.data["observation/state"][0]).all()
        assert shown.reward is not None
        for flags in (shown.success, shown.terminated, shown.truncated):
            assert flags is not None
            assert not flags[0]
        assert shown.success is not None
        assert shown.terminated is not None
        assert shown.truncated is not None
        nan = bool(np.isnan(shown.data["observation/state"][1]).any())
        seen.append((nan, bool(np.isnan(shown.reward[1])), *map(bool, (shown.success[1], shown.terminated[1]))))
        seen[-1] += (bool(shown.truncated[1]),)
    assert seen == [
        (True, False, True, False, False),
        (False, True, False, False, True),
        (False, False, True, True, True),
    ]


def test_it_raises_diverges_and_is_cut_off_when_asked() -> None:
    still = np.zeros((1, 5), np.float32)
    for faults, error in (({"raise_at": 1}, RuntimeError), ({"diverge_at": 1}, SimDiverged)):
        bridge = TestCardBridge(cameras=0, faults=faults)
        bridge.reset()
        with pytest.raises(error, match="at tick 1"):
            bridge.step(still)
    limited = TestCardBridge(cameras=0, max_ticks=2)
    limited.reset()
    ends = []
    for _ in range(2):
        limited.step(still)
        truncated = limited.get_observation().truncated
        assert truncated is not None
        ends.append(bool(truncated[0]))
    assert ends == [False, True]


class TestConformance(BridgeConformance):
    def make_bridge(self, **options: Any) -> TestCardBridge:
        return TestCardBridge(width=32, height=48, max_ticks=8, **options)

    def recognise(self, image: Array) -> str:
        return recognise(image)


class TestVectorConformance(BridgeConformance):
    def make_bridge(self, num_envs: int = 3, **options: Any) -> TestCardVectorBridge:
        return TestCardVectorBridge(num_envs=num_envs, width=32, height=48, max_ticks=8, **options)

    def recognise(self, image: Array) -> str:
        return recognise(image)
