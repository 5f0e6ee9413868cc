"""What a workspace costs, one to hundreds at once: its start, commands and files, its end, and what it leaves."""

from __future__ import annotations

from hudsim.bench.sandbox.command import main

__all__ = ["main"]
