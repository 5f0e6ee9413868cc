"""Worlds for the tests beside this file. Loaded by path, so that sim processes find them too."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hudsim.bridges.testcard import TestCardBridge, TestCardVectorBridge
from hudsim.contract import Contract
from hudsim.robot.bridge import Array, Observation, RobotBridge
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec

__all__ = ["Card", "Cards", "Discrete", "Draws", "GilHang", "Grid", "HudPair", "SlowReset", "inline", "spawned", "spec"]

SMALL: dict[str, Any] = {"width": 32, "height": 32, "cameras": 1, "state": 5}


def timed(contract: Contract | Mapping[str, Any], timing: Mapping[str, Any], rule: str) -> Contract:
    document = Contract.load(contract).to_json()
    document["timing"] = {**document.get("timing", {}), **timing}
    document["success"] = {"rule": rule}
    return Contract.load(document)


class Card(TestCardBridge):
    """A small test card; ``timing`` and ``rule`` go into its contract."""

    def __init__(self, *, timing: Mapping[str, Any] | None = None, rule: str = "any", **options: Any) -> None:
        super().__init__(**{**SMALL, **options})
        self.contract = timed(self.contract, timing or {}, rule)


class Cards(TestCardVectorBridge):
    """The same with slots."""

    def __init__(
        self, *, num_envs: int = 1, timing: Mapping[str, Any] | None = None, rule: str = "any", **options: Any
    ) -> None:
        super().__init__(num_envs=num_envs, **{**SMALL, **options})
        self.contract = timed(self.contract, timing or {}, rule)


class SlowReset(Card):
    """Its reset takes ``reset_s`` seconds, whatever else waits."""

    def __init__(self, *, reset_s: float, **options: Any) -> None:
        super().__init__(**options)
        self._reset_s = reset_s

    def reset(self, seed: int | None = None, prompt: str = "read the card") -> str:
        time.sleep(self._reset_s)
        return super().reset(seed, prompt)


class GilHang(Card):
    """Its third step hangs in native code that keeps the GIL: no Python thread of the process runs any more."""

    def step(self, action: Array) -> None:
        super().step(action)
        if len(self.executed) == 3:
            ctypes.PyDLL(None).sleep(600)


class BadCap(Card):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no such robot here")


class Dies(Card):
    """Its third step ends the process, as a segmentation fault does."""

    def step(self, action: Array) -> None:
        super().step(action)
        if len(self.executed) == 3:
            os._exit(11)


class HudPair(RobotBridge):
    """As bridges are written for HUD: a v0 contract without shapes, the bare pair, scores as attributes."""

    contract = {  # noqa: RUF012 - so it is in the bridges that are written for HUD
        "robot_type": "pair",
        "control_rate": 10,
        "features": {
            "observation/state": {"role": "observation", "dtype": "float32"},
            "action": {"role": "action", "names": ["x", "y"]},
        },
    }

    def reset(self, seed: int = 0) -> str:
        self._at = np.full((1, 2), float(seed), np.float32)
        self._left = 3
        return "go"

    def step(self, action: Array) -> None:
        self._at = self._at + action
        self._left -= 1
        self.total_reward += 0.5
        self.success = self.terminated = self._left == 0

    def get_observation(self) -> tuple[dict[str, Array], Array]:
        return {"observation/state": self._at}, np.array([self.terminated])


class Discrete(RobotBridge):
    """Takes one action of ``feature`` and shows what it got, exactly."""

    def __init__(self, feature: Mapping[str, Any]) -> None:
        dtype, shape = feature["dtype"], list(feature["shape"])
        self.contract = {
            "schema": "hudsim/1",
            "control_rate": 50.0,
            "features": {
                "observation/got": {"role": "observation", "dtype": dtype, "shape": shape},
                "action": {"role": "action", **feature},
            },
        }
        self._got = np.zeros((1, *shape), dtype)

    def reset(self, seed: int = 0) -> str:
        self._got = np.zeros_like(self._got)
        return ""

    def step(self, action: Array) -> None:
        assert action.dtype == self._got.dtype, "the world gets its contract's dtype"
        self._got = np.array(action)

    def get_observation(self) -> Observation:
        return Observation({"observation/got": self._got})


def spec(kind: type[RobotBridge] = Card, **options: Any) -> WorldSpec:
    """``kind`` by this file's path, so that it needs no import path."""
    return WorldSpec(f"{Path(__file__).resolve()}:{kind.__name__}", options)


_SERVING = frozenset({"num_envs", "mode", "rate_hz", "watchdog_s", "autostart", "seed", "port", "bearer", "host"})


def inline(kind: type[RobotBridge] = Card, **options: Any) -> RobotEndpoint:
    """A world in this process; what :class:`Serving` takes goes there, the rest to ``kind``."""
    serving = {name: options.pop(name) for name in list(options) if name in _SERVING}
    return RobotEndpoint.inline(spec(kind, **options), **serving)


def spawned(kind: type[RobotBridge] = Card, **options: Any) -> RobotEndpoint:
    """The same in a process of its own."""
    serving = {name: options.pop(name) for name in list(options) if name in _SERVING}
    return RobotEndpoint.spawn(spec(kind, **options), **serving)


class Grid(RobotBridge):
    """An action of 80×80 numbers, of which the observation is the sum."""

    def __init__(self) -> None:
        self.contract = Contract.load(
            {
                "schema": "hudsim/1",
                "control_rate": 50.0,
                "features": {
                    "sum": {"role": "observation", "dtype": "float64", "shape": [1]},
                    "map": {"role": "observation", "dtype": "float32", "shape": [80, 80]},
                    "action": {"role": "action", "dtype": "float32", "shape": [80, 80]},
                },
            }
        )
        self._action: Array = np.zeros((1, 80, 80), np.float32)

    def reset(self) -> str:
        return "add"

    def step(self, action: Array) -> None:
        self._action = action

    def get_observation(self) -> Observation:
        return Observation({"sum": np.array([[self._action.sum(dtype=np.float64)]]), "map": self._action})


class Draws(RobotBridge):
    """An image full of the tick's number, drawn into :meth:`out`; where that is not shown, a copy of it is.

    ``lent`` says whether it was drawn into memory of an agent's.
    """

    def __init__(self, *, show_every: int = 1) -> None:
        self.contract = Contract.load(
            {
                "schema": "hudsim/1",
                "control_rate": 50.0,
                "features": {
                    "image": {"role": "observation", "type": "rgb", "dtype": "uint8", "shape": [100, 100, 3]},
                    "lent": {"role": "observation", "dtype": "int64", "shape": [1]},
                    "action": {"role": "action", "dtype": "float32", "shape": [1]},
                },
            }
        )
        self._show_every = show_every
        self._tick = 0

    def reset(self) -> str:
        self._tick = 0
        return "draw"

    def step(self, action: Array) -> None:
        self._tick += 1

    def get_observation(self) -> Observation:
        image = self.out("image")
        image[:] = self._tick
        lent = self.pages.get(0) is not None
        shown = image if self._tick % self._show_every == 0 else image.copy()
        return Observation({"image": shown[np.newaxis], "lent": np.array([[lent]], np.int64)})


class Forks(Card):
    """Its second step forks a process that lives on, with all that this one holds open."""

    def step(self, action: Array) -> None:
        super().step(action)
        if len(self.executed) == 2 and os.fork() == 0:
            time.sleep(60.0)
            os._exit(0)


class SlowStep(Card):
    """Its second step takes ``step_for_s`` seconds."""

    def __init__(self, *, step_for_s: float, **options: Any) -> None:
        super().__init__(**options)
        self._step_for_s = step_for_s

    def step(self, action: Array) -> None:
        super().step(action)
        if len(self.executed) == 2:
            time.sleep(self._step_for_s)
