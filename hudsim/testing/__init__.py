"""For the tests of one's own bridges and models: conformance kits, a clock that obeys, a network that fails."""

from __future__ import annotations

from hudsim.testing.bridge import BridgeConformance
from hudsim.testing.clock import FakeClock
from hudsim.testing.finding import Finding
from hudsim.testing.link import FaultyLink
from hudsim.testing.model import ModelConformance

__all__ = ["BridgeConformance", "FakeClock", "FaultyLink", "Finding", "ModelConformance"]
