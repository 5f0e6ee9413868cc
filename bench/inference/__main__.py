"""``python -m hudsim.bench.inference``."""

from __future__ import annotations

import sys

from hudsim.bench.inference import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
