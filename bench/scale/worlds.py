"""``WORLDS``: what is served many times over."""

from __future__ import annotations

from typing import Any

from hudsim.robot.spec import WorldSpec

__all__ = ["RATE_HZ", "WORLDS", "world_of"]

RATE_HZ = 50.0

_CARD = "hudsim.bridges.testcard:TestCardBridge"
_ARM = "hudsim.bridges.arm.bridge:ArmBridge"

WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "state": (_CARD, {"cameras": 0}),
    "camera": (_CARD, {"cameras": 1, "width": 224, "height": 224}),
    "arm": (_ARM, {"task": "reach", "cameras": False}),
    "arm-cameras": (_ARM, {"task": "reach"}),
}
"""Name → target and arguments. ``state`` and ``camera`` (one of 224²) are test cards, which cost next to nothing
themselves; ``arm`` simulates in MuJoCo, ``arm-cameras`` renders two pictures a tick besides."""


def world_of(name: str) -> WorldSpec:
    """For a process of its own."""
    target, args = WORLDS[name]
    return WorldSpec(target, args)
