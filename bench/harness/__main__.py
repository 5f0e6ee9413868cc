"""``python -m hudsim.bench.harness``."""

from __future__ import annotations

import sys

from hudsim.bench.harness import main
from hudsim.bench.shared.program import program

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(program(main))
