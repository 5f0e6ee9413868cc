"""``python -m hudsim.bench.sandbox``."""

from __future__ import annotations

import sys

from hudsim.bench.sandbox import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
