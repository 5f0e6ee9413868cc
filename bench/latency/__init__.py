"""Action → next observation: hudsim, its floors and its peers, by turns in the same run."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    return start("hudsim.bench.latency.command", arguments)
