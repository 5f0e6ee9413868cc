"""How late ticks are, by rate and by what else the machine does."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    return start("hudsim.bench.jitter.command", arguments)
