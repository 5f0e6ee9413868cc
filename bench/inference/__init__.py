"""Chunk strategies against the time that an inference takes."""

from __future__ import annotations

from hudsim.bench.inference.command import main

__all__ = ["main"]
