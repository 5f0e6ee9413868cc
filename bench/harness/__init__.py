"""What the harness costs: runs a second, what a run adds to its episode, where a run's time goes."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if 1,000 runs took longer than they may."""
    return start("hudsim.bench.harness.command", arguments)
