"""Where the tip should go next in each of the arm's tasks, decided from what is there now and nothing else.

Each rule looks at the commanded tip and the objects and names one waypoint. No rule remembers anything, so a plan made
a few ticks later, from where the first plan has led by then, goes on along the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULES", "View", "Waypoint", "push_distance"]

Floats = NDArray[np.float64]

_FINGER = 0.011  # half a finger's thickness along the hand's x [m]
_FORK = 0.030  # opening while pushing: two points of contact hold the cube straight
_PUSH_HEIGHT = 0.022
_TRAVEL = 0.13  # height at which the tip crosses over things


@dataclass
class View:
    """One world: tip position [3], its yaw [rad], commanded opening [m], cube [3] with yaw, target [3]."""

    tip: Floats
    yaw: float
    opening: float
    object: Floats
    object_yaw: float
    target: Floats
    half: float


@dataclass(frozen=True)
class Waypoint:
    """Where to: position [3], yaw [rad] of the hand pointing down, opening [m], top speed [m/s]."""

    position: Floats
    yaw: float
    opening: float
    speed: float
    carries: bool = False
    """Whether the cube goes along with the tip."""

    pushes: bool = False
    """Whether the fingers shove the cube before them."""


def _nearest(angle: float, period: float, to: float) -> float:
    """``angle`` plus the multiple of ``period`` that brings it nearest ``to``."""
    return angle + period * round((to - angle) / period)


def reach(view: View) -> Waypoint:
    return Waypoint(view.target, 0.0, 0.08, 0.5)


def lift(view: View) -> Waypoint:
    cube, tip = view.object, view.tip
    yaw = _nearest(view.object_yaw, math.pi / 2, view.yaw)
    beside = math.dist(tip[:2], cube[:2])
    above = float(tip[2] - cube[2])
    if beside < 0.02 and abs(above) < 0.02 and view.opening < 2 * view.half - 0.010:
        return Waypoint(np.array([tip[0], tip[1], 0.17]), view.yaw, 0.025, 0.35, carries=True)
    aligned = abs(yaw - view.yaw) < 0.06
    if beside < 0.008 and abs(above) < 0.004 and aligned:
        return Waypoint(cube, yaw, 0.025, 0.1)
    if beside < 0.004 + 0.15 * max(above, 0.0) and aligned:
        return Waypoint(cube, yaw, 0.08, 0.3)
    if above < 0.06 and beside > 0.01:
        return Waypoint(np.array([tip[0], tip[1], _TRAVEL]), view.yaw, 0.08, 0.3)
    return Waypoint(cube + [0.0, 0.0, 0.10], yaw, 0.08, 0.5)


def push(view: View) -> Waypoint:
    cube, tip = view.object, view.tip
    way = view.target[:2] - cube[:2]
    left = float(np.linalg.norm(way))
    if left < 0.012:
        return Waypoint(tip, view.yaw, _FORK, 0.1)
    along = way / left
    contact = push_distance(view, along)
    yaw = _nearest(math.atan2(along[1], along[0]), math.pi, view.yaw)
    behind = float((tip[:2] - cube[:2]) @ along)
    sideways = abs(float((tip[:2] - cube[:2]) @ np.array([-along[1], along[0]])))
    low = tip[2] < _PUSH_HEIGHT + 0.012
    # In contact the direction to the target wavers, and says little near it: the fork keeps its heading while it does.
    facing = abs(yaw - view.yaw) < 0.4 or left < 0.05
    if low and facing and -contact - 0.06 < behind < 0.022 - contact and sideways < 0.015:
        end = view.target[:2] - along * contact
        return Waypoint(np.array([*end, _PUSH_HEIGHT]), view.yaw, _FORK, 0.16, pushes=True)
    start = np.array([*(cube[:2] - along * (contact + 0.03)), _PUSH_HEIGHT])
    beside = math.dist(tip[:2], start[:2])
    aligned = abs(yaw - view.yaw) < 0.1
    if beside < 0.006 + 0.1 * max(float(tip[2]) - _PUSH_HEIGHT, 0.0) and aligned:
        return Waypoint(start, yaw, _FORK, 0.3)
    if tip[2] < 0.08 and beside > 0.012:
        return Waypoint(np.array([tip[0], tip[1], _TRAVEL]), view.yaw, _FORK, 0.3)
    return Waypoint(start + [0.0, 0.0, _TRAVEL - _PUSH_HEIGHT], yaw, _FORK, 0.5)


def push_distance(view: View, along: Floats) -> float:
    """From the tip to the cube's centre when the fingers touch it from behind, pushing ``along`` [2].

    The fingers touch at the fork's two inner edges; between them a corner of the cube may stick out backwards.
    """
    angle = _nearest(view.object_yaw - math.atan2(along[1], along[0]), math.pi / 2, 0.0)
    c, s = math.cos(angle), abs(math.sin(angle))
    faces = [(view.half - edge * s) / c for edge in (-_FORK / 2, _FORK / 2)]
    if s > 1e-6:
        faces[0] = min(faces[0], (view.half - _FORK / 2 * c) / s)
    return _FINGER + max(faces)


RULES: dict[str, Callable[[View], Waypoint]] = {"reach": reach, "lift": lift, "push": push}
