"""The three tasks: how an episode starts, when it has succeeded, and what it earns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.arm.world import HALF
from hudsim.errors import UnknownName

__all__ = ["DIFFICULTIES", "GOALS", "Goal", "Ranges", "Scene", "Start", "find_goal", "find_ranges"]

Vector = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Ranges:
    """How far starts vary: half-widths in x and y about the table's middle [m], of the yaw and joints [rad]."""

    x: float
    y: float
    yaw: float
    joints: float


DIFFICULTIES = {
    "easy": Ranges(x=0.05, y=0.10, yaw=0.26, joints=0.01),
    "medium": Ranges(x=0.10, y=0.20, yaw=0.79, joints=0.03),
    "hard": Ranges(x=0.14, y=0.28, yaw=3.14, joints=0.06),
}

_MIDDLE = (0.50, 0.0)
_AT_MARKER = 0.02  # m
_HEIGHT = 0.10  # m
_TOUCH = 0.1  # N
_ON_DISC = 0.03  # m
_IN_TOUCH = 0.05  # m from the tip to the cube's centre: half a finger, the cube's half diagonal, and a little


@dataclass(frozen=True)
class Start:
    """Where an episode begins: cube position [3], its yaw [rad], target [3]; the marker is where the target is."""

    object: NDArray[np.float64]
    yaw: float
    target: NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """What a goal looks at, of one world: gripper tip, cube and target [3] in m, touch forces of the fingers [N]."""

    tip: Vector
    object: Vector
    target: Vector
    touch: Vector


class Goal(ABC):
    """One task.

    The reward of a tick is what the tick added to :meth:`progress` (0 … 1), halved, and 0.5 more when success has
    held; so an episode earns at most 1, and dawdling earns nothing (potential-based shaping: Ng, Harada, Russell,
    ICML 1999).
    """

    name: ClassVar[str]
    prompt: ClassVar[str]
    seconds: ClassVar[float]
    """The time limit."""

    @abstractmethod
    def start(self, rng: np.random.Generator, ranges: Ranges) -> Start:
        """Draw where things are."""

    @abstractmethod
    def success(self, scene: Scene) -> bool:
        """Whether the goal holds now."""

    @abstractmethod
    def progress(self, scene: Scene) -> float:
        """How near the goal is, 0 (far) … 1 (there)."""

    @abstractmethod
    def parts(self, first: Scene, scene: Scene) -> dict[str, float]:
        """How much is done now of each step on the way, in order, 0 … 1. ``first`` is how the episode began."""


def _covered(first: float, now: float, enough: float) -> float:
    """The share of a way that is covered: 0 at the distance ``first`` and beyond, 1 within ``enough`` [m].

    In whole thousandths: what moves by itself while it settles has covered nothing.
    """
    if now <= enough:
        return 1.0
    return 0.0 if now >= first else math.floor((first - now) / (first - enough) * 1000) / 1000


def _closeness(a: Vector, b: Vector, scale: float) -> float:
    """1 at distance 0, 0.24 at ``scale`` [m], towards 0 beyond."""
    return 1.0 - math.tanh(math.dist(a, b) / scale)


def _on_table(rng: np.random.Generator, ranges: Ranges, z: float) -> NDArray[np.float64]:
    x, y = rng.uniform(-1.0, 1.0, 2)
    return np.array([_MIDDLE[0] + x * ranges.x, _MIDDLE[1] + y * ranges.y, z])


class Reach(Goal):
    name = "reach"
    prompt = "Bring the gripper's tip to the green marker."
    seconds = 4.0

    def start(self, rng: np.random.Generator, ranges: Ranges) -> Start:
        target = _on_table(rng, ranges, 0.30)
        target[2] += rng.uniform(-1.0, 1.0) * ranges.y * 0.9
        return Start(np.zeros(3), 0.0, target)

    def success(self, scene: Scene) -> bool:
        return math.dist(scene.tip, scene.target) < _AT_MARKER

    def progress(self, scene: Scene) -> float:
        return _closeness(scene.tip, scene.target, 0.2)

    def parts(self, first: Scene, scene: Scene) -> dict[str, float]:
        """``reached``: of the tip's way to the marker."""
        return {"reached": _covered(math.dist(first.tip, first.target), math.dist(scene.tip, scene.target), _AT_MARKER)}


class Lift(Goal):
    name = "lift"
    prompt = "Lift the red cube 10 cm off the table."
    seconds = 8.0

    def start(self, rng: np.random.Generator, ranges: Ranges) -> Start:
        position = _on_table(rng, ranges, HALF)
        yaw = float(rng.uniform(-1.0, 1.0) * ranges.yaw)
        return Start(position, yaw, position + [0.0, 0.0, 0.10])

    def success(self, scene: Scene) -> bool:
        """The cube's underside is 10 cm up and both fingers press on it."""
        return scene.object[2] - HALF >= _HEIGHT and min(scene.touch) > _TOUCH

    def progress(self, scene: Scene) -> float:
        return 0.4 * _closeness(scene.tip, scene.object, 0.2) + 0.6 * self._height(scene)

    def parts(self, first: Scene, scene: Scene) -> dict[str, float]:
        """``reached``: of the tip's way to the cube; ``grasped``: it is between the fingers and both press on it;
        ``lifted``: of its way up, in that grip (a cube that is knocked up is not lifted).
        """
        far, near = math.dist(first.tip, first.object), math.dist(scene.tip, scene.object)
        grasped = near < HALF and min(scene.touch) > _TOUCH
        return {
            "reached": _covered(far, near, HALF),
            "grasped": float(grasped),
            "lifted": self._height(scene) if grasped else 0.0,
        }

    def _height(self, scene: Scene) -> float:
        return min(max((scene.object[2] - HALF) / _HEIGHT, 0.0), 1.0)


class Push(Goal):
    name = "push"
    prompt = "Push the blue cube onto the yellow disc."
    seconds = 12.0

    def start(self, rng: np.random.Generator, ranges: Ranges) -> Start:
        position = _on_table(rng, ranges, HALF)
        yaw = float(rng.uniform(-1.0, 1.0) * ranges.yaw)
        while True:
            target = _on_table(rng, ranges, 0.0)
            if 0.08 < math.dist(position[:2], target[:2]) < 0.30:
                return Start(position, yaw, target)

    def success(self, scene: Scene) -> bool:
        """The cube stands on the table, its centre within 3 cm of the disc's."""
        return math.dist(scene.object[:2], scene.target[:2]) < _ON_DISC and _on_the_table(scene)

    def progress(self, scene: Scene) -> float:
        near = _closeness(scene.object[:2], scene.target[:2], 0.2)
        return 0.3 * _closeness(scene.tip, scene.object, 0.2) + 0.7 * near

    def parts(self, first: Scene, scene: Scene) -> dict[str, float]:
        """``reached``: of the tip's way to where the fingers touch the cube; ``pushed``: of the cube's way to the
        disc, along the table.
        """
        far, near = math.dist(first.tip, first.object), math.dist(scene.tip, scene.object)
        left = math.dist(scene.object[:2], scene.target[:2])
        way = _covered(math.dist(first.object[:2], first.target[:2]), left, _ON_DISC)
        return {"reached": _covered(far, near, _IN_TOUCH), "pushed": way if _on_the_table(scene) else 0.0}


def _on_the_table(scene: Scene) -> bool:
    return scene.object[2] < HALF + 0.01


GOALS: dict[str, Goal] = {goal.name: goal for goal in (Reach(), Lift(), Push())}


def find_goal(task: str) -> Goal:
    """The goal of ``task``. Raises :class:`~hudsim.errors.UnknownName`."""
    if task not in GOALS:
        raise UnknownName("task", task, GOALS)
    return GOALS[task]


def find_ranges(difficulty: str) -> Ranges:
    """The ranges of ``difficulty``. Raises :class:`~hudsim.errors.UnknownName`."""
    if difficulty not in DIFFICULTIES:
        raise UnknownName("difficulty", difficulty, DIFFICULTIES)
    return DIFFICULTIES[difficulty]
