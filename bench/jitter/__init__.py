"""How late ticks are, by rate and by what else the machine does."""

from __future__ import annotations

from hudsim.bench.jitter.command import main

__all__ = ["main"]
