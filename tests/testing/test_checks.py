"""The checks find what is wrong, and say it in words; each bridge here is wrong in one way."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import TestCardBridge, TestCardVectorBridge, recognise
from hudsim.robot.bridge import Array, Observation, RobotBridge
from hudsim.testing.checks import Finding, check_bridge

SMALL: dict[str, Any] = {"width": 64, "height": 64, "cameras": 1, "max_ticks": 40}


class Card(TestCardBridge):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**SMALL, **options})


def wrong(factory: Any, **options: Any) -> list[Finding]:
    return [finding for finding in check_bridge(factory, **options) if not finding.ok]


def one(factory: Any, severity: str = "error") -> str:
    """The only thing that is wrong, in words."""
    found = wrong(factory, recognise=recognise)
    assert [finding.severity for finding in found] == [severity], "\n".join(map(str, found))
    return str(found[0])


@pytest.mark.parametrize("kind", [Card, lambda num_envs=1: TestCardVectorBridge(num_envs=num_envs, **SMALL)])
def test_a_good_world_has_nothing_wrong_and_every_check_says_so(kind: Any) -> None:
    found = check_bridge(kind, recognise=recognise)
    assert [str(finding) for finding in found if not finding.ok] == []
    said = "\n".join(map(str, found))
    for word in ("world", "features as the contract says", "upright", "bit for bit"):
        assert word in said
    assert "truncated at tick 40" in said
    assert "50 Hz" in said


def test_a_world_that_cannot_be_made_is_one_finding() -> None:
    def broken() -> RobotBridge:
        raise RuntimeError("no GPU")

    assert "no GPU" in one(broken)
    assert "expected a RobotBridge" in one(lambda: "nothing")


def test_an_error_is_said_once_and_not_by_every_check() -> None:
    said = one(lambda: Card(faults={"raise_at": 3}))
    assert said.startswith("observations: got RuntimeError: ")
    assert said.endswith(" at tick 3, expected no error")
    said = one(lambda: Card(faults={"nan_at": 2}))
    assert "got nan" in said
    assert " at tick 2, expected finite" in said


class Rewarded(Card):
    reward: Any = "a lot"

    def get_observation(self) -> Observation:
        seen = super().get_observation()
        return Observation(seen.data, truncated=seen.truncated, reward=type(self).reward)


@pytest.mark.parametrize("reward", ["a lot", np.zeros((1, 2)), object()])
def test_a_reward_that_is_not_one_number_a_world_is_an_error(reward: Any) -> None:
    assert "reward" in one(type("Rewarded", (Rewarded,), {"reward": reward}))


class Loose(Card):
    """Leaves the slot axis out and is careless about dtypes; the server puts both right."""

    def get_observation(self) -> Observation:
        seen = super().get_observation()
        data = {name: array[0] for name, array in seen.data.items()}
        data["observation/state"] = data["observation/state"].astype(np.float64)
        return Observation(data, truncated=seen.truncated, reward=seen.reward)


def test_what_the_server_puts_right_by_itself_is_a_warning_that_says_how_to() -> None:
    found = wrong(Loose)
    assert {finding.severity for finding in found} == {"warning"}
    said = [str(finding) for finding in found]
    image = "observation/camera0 (shape): got [64, 64, 3], without the world as its first axis, expected [1, 64, 64, 3]"
    assert any(words.startswith(image) and "array[np.newaxis]" in words for words in said)
    assert any("(dtype): got float64, expected float32" in words and "astype(np.float32)" in words for words in said)


class Transposed(Card):
    def get_observation(self) -> Observation:
        seen = super().get_observation()
        frames = seen.data["observation/camera0"].transpose(0, 3, 1, 2)
        return Observation({**seen.data, "observation/camera0": frames}, truncated=seen.truncated, reward=seen.reward)


def test_an_image_that_is_chw_is_named() -> None:
    assert "observation/camera0: got uint8[3, 64, 64]" in one(Transposed)


class Turned(Card):
    turn: Any = None

    def get_observation(self) -> Observation:
        seen = super().get_observation()
        frames = type(self).turn(seen.data["observation/camera0"])
        return Observation({**seen.data, "observation/camera0": frames}, truncated=seen.truncated, reward=seen.reward)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (lambda frames: frames[..., ::-1], "got bgr channels, expected rgb"),
        (lambda frames: frames[:, ::-1], "got an image that is upside down"),
        (lambda frames: frames[:, :, ::-1], "got an image that is mirrored"),
        (np.zeros_like, "got one colour all over, [0, 0, 0]"),
    ],
)
def test_an_image_that_is_turned_or_blank_is_named(turn: Any, words: str) -> None:
    kind = type("Turned", (Turned,), {"turn": staticmethod(turn)})
    assert words in one(kind)


class Remembers(Card):
    """Its start depends on what was played before."""

    def reset(self, seed: int | None = None, prompt: str = "") -> str:
        played = len(self.executed)
        return super().reset((seed or 0) + played, prompt)


class OfItsOwn(Card):
    """Every instance is another world."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        OfItsOwn.made += 1
        self._mine = OfItsOwn.made

    def reset(self, seed: int | None = None, prompt: str = "") -> str:
        return super().reset((seed or 0) + self._mine, prompt)


def test_an_episode_that_is_not_a_function_of_its_seed_is_told_when_and_where() -> None:
    assert "the same seed after another episode, observation/camera0 at tick 0" in one(Remembers)
    assert "the same seed in a fresh instance, observation/camera0 at tick 0" in one(OfItsOwn)


class Unseeded(Card):
    def reset(self, prompt: str = "") -> str:  # type: ignore[override]
        return super().reset(0, prompt)


class Fixed(Card):
    def reset(self, seed: int | None = None, prompt: str = "") -> str:
        return super().reset(0, prompt)


def test_what_may_be_meant_is_a_warning() -> None:
    assert "takes no seed" in one(Unseeded, "warning")
    assert "the same start for seeds" in one(Fixed, "warning")


class ResetsItself(Card):
    """As an environment with autoreset does: at the end it shows the next episode's first observation."""

    def get_observation(self) -> Observation:
        seen = super().get_observation()
        if seen.truncated is not None and seen.truncated.any():
            super().reset(self._seed)
            return Observation(super().get_observation().data, truncated=np.array([True]), reward=seen.reward)
        return seen

    def reset(self, seed: int | None = None, prompt: str = "") -> str:
        self._seed = seed
        return super().reset(seed, prompt)


def test_a_world_that_resets_itself_is_found_out() -> None:
    assert "ending: got" in one(ResetsItself)


class LooksAreSteps(Card):
    def get_observation(self) -> Observation:
        seen = super().get_observation()
        self._worlds._state[0, -1] += 1
        return seen


def test_looking_must_not_change_the_world() -> None:
    found = wrong(LooksAreSteps)
    assert "looking twice at observation/state" in str(found[0])


class Entangled(TestCardVectorBridge):
    """An idle slot moves when another is stepped."""

    def __init__(self, num_envs: int = 1) -> None:
        super().__init__(num_envs=num_envs, **SMALL)

    def step(self, action: Array, active: Array) -> None:  # type: ignore[override]
        super().step(action, active)
        self._state[:, -1] += 1


def test_slots_that_move_each_other_are_found_out() -> None:
    found = wrong(Entangled)
    assert any("a slot that is not stepped, observation/state" in str(finding) for finding in found)


class Slow(Card):
    def step(self, action: Array) -> None:
        super().step(action)
        time.sleep(0.004)


def test_a_step_that_takes_longer_than_a_period_is_a_warning() -> None:
    assert "400 Hz" in one(lambda: Slow(control_rate=400.0), "warning")


class ClosesOnce(Card):
    open = True

    def close(self) -> None:
        if not self.open:
            raise ValueError("closed already")
        self.open = False


def test_a_second_close_must_do_no_harm() -> None:
    assert "close: got ValueError: closed already" in one(ClosesOnce)
