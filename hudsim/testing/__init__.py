"""For tests of one's own: conformance kits, a clock that obeys, a network that fails, and solutions that cheat."""

from __future__ import annotations

from hudsim.testing.attacks import ATTACKS, Attack, run_attacks
from hudsim.testing.bridge import BridgeConformance
from hudsim.testing.clock import FakeClock
from hudsim.testing.finding import Finding
from hudsim.testing.link import FaultyLink
from hudsim.testing.model import ModelConformance

__all__ = [
    "ATTACKS",
    "Attack",
    "BridgeConformance",
    "FakeClock",
    "FaultyLink",
    "Finding",
    "ModelConformance",
    "run_attacks",
]
