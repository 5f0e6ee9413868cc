"""Chunk strategies against the time that an inference takes."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if a world broke."""
    return start("hudsim.bench.inference.command", arguments)
