"""How many worlds a process and a machine serve on time, and how many steps a second in lockstep."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    return start("hudsim.bench.scale.command", arguments)
