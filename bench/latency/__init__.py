"""Action → next observation: hudsim, its floors and its peers, by turns in the same run."""

from __future__ import annotations

from hudsim.bench.latency.command import main

__all__ = ["main"]
