"""What a workspace costs, one to hundreds at once: its start, commands and files, its end, and what it leaves."""

from __future__ import annotations

from hudsim.bench.shared.start import start

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if something failed or was left behind."""
    return start("hudsim.bench.sandbox.command", arguments)
