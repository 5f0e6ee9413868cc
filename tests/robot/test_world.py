"""Bridges of every kind as slots: who is asked for how many, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.errors import NoFreeSlot, SimFailed, UsageError
from hudsim.robot.bridge import Observation, RobotBridge
from hudsim.robot.world import BatchWorld, Row, SeparateWorlds, VectorWorld, make_world, reset_arguments
from tests.robot.worlds import Card, Cards, HudPair


def row(world: Any, slot: int) -> Row:
    seen = world.observe([slot])[slot]
    assert isinstance(seen, Row), seen
    return seen


def test_a_plain_bridge_is_made_once_for_each_slot() -> None:
    world = make_world(Card, num_envs=3)
    assert isinstance(world, SeparateWorlds)
    assert world.num_slots == 3


def test_a_vector_bridge_is_made_once_for_all_slots() -> None:
    made: list[int] = []

    def make(num_envs: int = 1) -> RobotBridge:
        made.append(num_envs)
        return Cards(num_envs=num_envs)

    world = make_world(make, num_envs=4)
    assert isinstance(world, VectorWorld)
    assert (made, world.num_slots) == ([4], 4)


def test_a_bridge_with_another_number_of_its_own_is_refused() -> None:
    with pytest.raises(UsageError, match="num_envs: got 3, but Cards has 2 by itself"):
        make_world(lambda: Cards(num_envs=2), num_envs=3)


def test_what_is_no_bridge_is_refused() -> None:
    with pytest.raises(UsageError, match="got a dict, expected a RobotBridge"):
        make_world(dict)  # type: ignore[arg-type]


class Batch(HudPair):
    """As HUD's bridges with ``num_envs``: one reset for all."""

    num_envs = 2

    def reset(self, seed: int = 0) -> str:
        super().reset(seed)
        self._at = np.array([[seed, seed], [seed + 1, seed + 1]], np.float32)
        return "go"


def test_a_batch_is_reset_together_and_each_slot_sees_its_row() -> None:
    world = make_world(Batch)
    assert isinstance(world, BatchWorld)
    assert [world.reset(slot, 5, {}) for slot in (0, 1)] == ["go", "go"]
    assert [row(world, slot).data["observation/state"].tolist() for slot in (0, 1)] == [[5, 5], [6, 6]]
    assert world.step({0: np.ones(2, np.float32), 1: np.zeros(2, np.float32)}) == {}
    assert [row(world, slot).data["observation/state"].tolist() for slot in (0, 1)] == [[6, 6], [6, 6]]


def test_a_batch_takes_one_seed_at_a_time() -> None:
    world = make_world(Batch)
    world.reset(0, 5, {})
    with pytest.raises((UsageError, NoFreeSlot), match="together"):
        world.reset(1, 6, {})


class Odd(Card):
    shows: Any = None

    def get_observation(self) -> Any:
        return self.shows


@pytest.mark.parametrize("shows", [None, {}, (1, 2, 3), ([], False), "card"])
def test_what_is_no_observation_is_named(shows: Any) -> None:
    world = make_world(type("Odd", (Odd,), {"shows": shows}))
    seen = world.observe([0])[0]
    assert isinstance(seen, SimFailed)
    assert "expected an Observation or (data" in str(seen)


class Missing(Card):
    def get_observation(self) -> Observation:
        return Observation({"observation/state": super().get_observation().data["observation/state"]})


def test_an_observation_against_the_contract_names_the_feature() -> None:
    world = make_world(Missing)
    seen = world.observe([0])[0]
    assert isinstance(seen, SimFailed)
    assert "observation/camera0: got an observation without it" in str(seen)


def test_a_reset_gets_the_seed_only_if_it_takes_one() -> None:
    def seeded(seed: int = 0, prompt: str = "") -> None: ...

    def unseeded(prompt: str = "") -> None: ...

    def anything(**task_args: Any) -> None: ...

    assert reset_arguments(seeded, 3, {"prompt": "x"}) == {"seed": 3, "prompt": "x"}
    assert reset_arguments(unseeded, 3, {"prompt": "x"}) == {"prompt": "x"}
    assert reset_arguments(anything, 3, {"size": 1}) == {"seed": 3, "size": 1}
    assert reset_arguments(seeded, None, {}) == {}


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({"reward": [0.1, 0.2]}, r"reward: got shape \[2\], expected one value a world, \[1\]"),
        ({"reward": ["a lot"]}, "reward: got .*a lot.*, expected numbers"),
        ({"terminated": [False, True]}, r"terminated: got shape \[2\]"),
        ({"success": [[True]]}, r"success: got shape \[1, 1\]"),
        ({"truncated": [None]}, "truncated: got .*None"),
    ],
)
def test_what_is_said_of_each_world_is_one_plain_value(observation: dict[str, Any], words: str) -> None:
    class Odd(Card):
        def get_observation(self) -> Observation:
            seen = super().get_observation()
            return Observation(seen.data, **({"terminated": seen.terminated} | observation))

    world = make_world(Odd)
    world.reset(0, 1, {})
    found = world.observe([0])[0]
    assert isinstance(found, SimFailed)
    with pytest.raises(SimFailed, match=words):
        raise found


def test_a_bridge_that_calls_exit_has_failed() -> None:
    class Leaves(Card):
        def step(self, action: Any) -> None:
            raise SystemExit(3)

    world = make_world(Leaves)
    world.reset(0, 1, {})
    failures = world.step({0: np.zeros(world.contract.action.shape or (), np.float32)})
    assert "SystemExit: 3" in failures[0].message
