"""``python -m hudsim.bench.jitter``."""

from __future__ import annotations

import sys

from hudsim.bench.jitter import main
from hudsim.bench.shared.program import program

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(program(main))
