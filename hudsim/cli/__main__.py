"""``python -m hudsim.cli``: the ``hudsim`` command without its script."""

from __future__ import annotations

from hudsim.cli.main import app

app(prog_name="hudsim")
