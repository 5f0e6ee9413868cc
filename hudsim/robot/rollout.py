"""``Rollout``: what came of one episode, as the agent saw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hudsim.robot.cadence import Cadence

__all__ = ["Rollout"]


@dataclass
class Rollout:
    """What an agent did in one episode.

    ticks
        Index of the last observation.
    result
        The world's own record of the episode; None from a world that keeps none (a HUD bridge).
    cadence
        The agent's stages: wire, adapt, infer. The world's are in ``result``.
    seam
        The largest step at a chunk boundary; nan if there was none.
    """

    prompt: str = ""
    ticks: int = 0
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    result: dict[str, Any] | None = None
    cadence: Cadence = field(default_factory=Cadence)
    seam: float = float("nan")
