"""``python -m hudsim``: the ``hudsim`` command."""

from __future__ import annotations

from hudsim.cli.__main__ import main

__all__: list[str] = []

main()
