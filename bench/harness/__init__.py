"""What the harness costs: runs a second, what a run adds to its episode, where a run's time goes."""

from __future__ import annotations

from hudsim.bench.harness.command import main

__all__ = ["main"]
