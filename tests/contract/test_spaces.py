from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from hudsim.contract import Contract
from hudsim.contract.spaces import flatten_observation, to_env_action
from hudsim.errors import ContractError

VECTOR = spaces.Box(-np.inf, np.inf, (3,), np.float32)
BUTTON = spaces.Discrete(2)


def image(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


def observed(space: spaces.Space[Any]) -> Contract:
    return Contract.from_spaces(space, BUTTON, 30)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Blackjack-v1", "Pendulum-v1"])
def test_an_environments_own_values_pass(env_id: str) -> None:
    env = gymnasium.make(env_id)
    contract = Contract.from_spaces(env.observation_space, env.action_space, 12.5)
    checks = contract.compile()
    observation, _ = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(10):
        checks.observation(flatten_observation(env.observation_space, observation))
        action, _ = checks.action(env.action_space.sample())
        taken = to_env_action(env.action_space, action)
        assert env.action_space.contains(taken)
        observation, _, over, cut, _ = env.step(taken)
        if over or cut:
            observation, _ = env.reset()
    env.close()
    assert contract.control_rate == 12.5


def test_nested_dicts_and_tuples_are_flattened_with_slashes() -> None:
    space = spaces.Dict(
        {
            "cameras": spaces.Dict({"front": image(24, 32, 3), "depth": spaces.Box(0, np.inf, (24, 32), np.float32)}),
            "pair": spaces.Tuple((VECTOR, spaces.Discrete(4, start=3))),
            "flags": spaces.MultiBinary(5),
            "cells": spaces.MultiDiscrete([2, 3], start=[1, -1]),
        }
    )
    contract = observed(space)
    features = contract.observations
    assert {name: (f.type, f.dtype, f.shape) for name, f in features.items()} == {
        "observation/cameras/front": ("rgb", "uint8", (24, 32, 3)),
        "observation/cameras/depth": (None, "float32", (24, 32)),
        "observation/pair/0": (None, "float32", (3,)),
        "observation/pair/1": (None, "int64", ()),
        "observation/flags": (None, "int8", (5,)),
        "observation/cells": (None, "int64", (2,)),
    }
    limits = features["observation/cells"].limits
    assert limits is not None
    assert (limits.min, limits.max) == ([1, -1], [2, 1])
    space.seed(0)
    for _ in range(5):
        value = space.sample()
        flat = flatten_observation(space, value)
        checked = contract.compile().observation(flat)
        np.testing.assert_array_equal(checked["observation/cameras/front"], value["cameras"]["front"])
        assert checked["observation/pair/1"] == value["pair"][1]


@pytest.mark.parametrize(
    ("space", "name", "kind"),
    [
        (image(32, 48, 3), "observation/image", "rgb"),
        (image(32, 48, 1), "observation/image", "gray"),
        (image(84, 84, 4), "observation/state", None),
        (image(4, 84, 84), "observation/state", None),
        (image(7, 7, 3), "observation/state", None),
        (image(84, 84), "observation/state", None),
        (spaces.Box(0, 1, (32, 48, 3), np.float32), "observation/state", None),
        (spaces.Discrete(4), "observation/state", None),
    ],
)
def test_a_single_space_is_named_by_what_it_is(space: spaces.Space[Any], name: str, kind: str | None) -> None:
    contract = observed(space)
    assert list(contract.observations) == [name]
    assert contract.observations[name].type == kind
    flat = flatten_observation(space, space.sample())
    contract.compile().observation(flat)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (image(3, 64, 64), ["observation/state", "CHW", "moveaxis"]),
        (spaces.Dict({"cam": image(1, 64, 64)}), ["observation/cam", "CHW"]),
        (spaces.Dict({"text": spaces.Text(5)}), ["observation/text", "Text", "Box"]),
        (spaces.Dict({"g": spaces.Graph(VECTOR, None)}), ["observation/g", "Graph"]),
        (spaces.Sequence(VECTOR), ["observation/state", "Sequence"]),
        (spaces.OneOf([VECTOR, BUTTON]), ["observation/state", "OneOf"]),
        (spaces.Dict({"reward": VECTOR}), ["observation/reward", "'reward'", "rename"]),
        (spaces.Dict({"meta": spaces.Dict({"a": VECTOR})}), ["observation/meta", "rename"]),
        (spaces.Dict({"a/b": VECTOR, "a": spaces.Dict({"b": VECTOR})}), ["observation/a/b", "two"]),
    ],
)
def test_what_cannot_be_carried_is_refused_by_name(space: spaces.Space[Any], words: list[str]) -> None:
    with pytest.raises(ContractError) as refused:
        observed(space)
    for word in words:
        assert word in refused.value.message


@pytest.mark.parametrize("space", [spaces.Dict({"a": VECTOR}), spaces.Tuple((BUTTON,)), spaces.Text(3)])
def test_an_action_that_is_no_array_is_refused(space: spaces.Space[Any]) -> None:
    with pytest.raises(ContractError, match=f"{type(space).__name__} space") as refused:
        Contract.from_spaces(VECTOR, space, 10)
    assert refused.value.feature == "action"


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3),
        spaces.Discrete(3, start=-5),
        spaces.Discrete(3, start=2**40),
        spaces.MultiDiscrete([2, 3, 4]),
        spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), dtype="int32"),
        spaces.MultiBinary(4),
        spaces.MultiBinary([2, 2]),
        spaces.Box(-1, 1, (6,), np.float32),
        spaces.Box(np.array([-1, -np.inf]), np.array([np.inf, 2.8973]), dtype=np.float64),
        spaces.Box(-np.inf, np.inf, (2, 2), np.float32),
        spaces.Box(0, 255, (2,), np.uint8),
        spaces.Box(-3, 7, (2,), np.int64),
        spaces.Box(0, 1, (), np.float32),
    ],
    ids=str,
)
def test_the_space_contains_each_action_that_passed(space: spaces.Space[Any]) -> None:
    contract = Contract.from_spaces(VECTOR, space, 10)
    checks = contract.compile()
    space.seed(3)
    samples = [space.sample() for _ in range(10)] + [contract.example(seed)[1] for seed in range(10)]
    for sample in [*samples, checks.hold(None)]:
        action, clipped = checks.action(sample)
        assert clipped is None
        np.testing.assert_array_equal(action, sample)
        action.flags.writeable = False
        taken = to_env_action(space, action)
        assert space.contains(taken)
        assert isinstance(taken, int) or taken.flags.writeable


def test_a_box_actions_limits_are_enforced_as_asked() -> None:
    space = spaces.Box(np.array([-1, -np.inf], np.float32), np.array([1, np.inf], np.float32))
    far = np.array([1.2, 1e9], np.float32)
    with pytest.raises(ContractError, match=r"at \[0\]"):
        Contract.from_spaces(VECTOR, space, 10).compile().action(far)
    clipped = Contract.from_spaces(VECTOR, space, 10, out_of_range="clip", hold="zero")
    assert clipped.compile().action(far)[0].tolist() == [1, 1e9]
    assert clipped.action.hold == ["zero", "zero"]
    assert clipped.to_json()["features"]["action"]["limits"] == {"min": [-1, None], "max": [1, None]}


def test_privileged_observations_are_marked() -> None:
    space = spaces.Dict({"cube": VECTOR, "arm": VECTOR})
    for name in ("cube", "observation/cube"):
        contract = Contract.from_spaces(space, BUTTON, 10, privileged=[name])
        assert [n for n, f in contract.features.items() if f.privileged] == ["observation/cube"]
    with pytest.raises(ContractError, match="did you mean 'observation/cube'"):
        Contract.from_spaces(space, BUTTON, 10, privileged=["cub"])


def test_nothing_that_is_shown_is_dropped() -> None:
    space = spaces.Dict({"a": VECTOR, "b": spaces.Tuple((VECTOR, VECTOR))})
    zero = np.zeros(3, np.float32)
    for value, words in (
        ({"a": zero}, "no 'b'"),
        ({"a": zero, "b": (zero, zero), "c": zero}, "'c', which its space does not have"),
        ({"a": zero, "b": (zero,)}, "no 1"),
        ({"a": zero, "b": (zero, zero, zero)}, "2, which"),
        (zero, "expected dict"),
        ({"a": zero, "b": 3}, "expected tuple"),
    ):
        with pytest.raises(ContractError, match=words):
            flatten_observation(space, value)


def test_a_discrete_observation_shown_as_a_flag_is_its_number() -> None:
    for value in (True, np.True_, np.array(1, np.uint8), 1):
        flat = flatten_observation(BUTTON, value)
        assert observed(BUTTON).compile().observation(flat)["observation/state"] == 1


def test_an_action_shaped_like_an_image_keeps_its_limits() -> None:
    contract = Contract.from_spaces(VECTOR, spaces.Box(0, 9, (3, 32, 32), np.uint8), 10)
    assert contract.action.type is None
    with pytest.raises(ContractError, match="10 at"):
        contract.compile().action(np.full((3, 32, 32), 10, np.uint8))


def test_a_batch_is_flattened_as_it_is() -> None:
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    observation, _ = envs.reset(seed=0)
    flat = flatten_observation(envs.single_observation_space, observation)
    assert flat["observation/state"].shape == (3, 4)
    envs.close()


def test_an_asymmetric_picture_is_carried_exactly() -> None:
    card = np.zeros((16, 20, 3), np.uint8)
    card[0, 0] = (255, 0, 0)
    card[0, -1] = (0, 255, 0)
    card[-1, 0] = (0, 0, 255)
    space = image(16, 20, 3)
    checked = observed(space).compile().observation(flatten_observation(space, card))
    np.testing.assert_array_equal(checked["observation/image"], card)


def test_the_contract_does_not_import_gymnasium() -> None:
    code = "import sys, hudsim.contract; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
