"""How many worlds a process and a machine serve on time, and how many steps a second in lockstep."""

from __future__ import annotations

from hudsim.bench.scale.command import main

__all__ = ["main"]
