"""``program``: a benchmark's command line as a program of its own, whose mistakes are one line."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hudsim.errors import HudsimError, UsageError

__all__ = ["program"]


def program(main: Callable[[], int]) -> int:
    """The exit code, as of ``hudsim bench``: 2 for usage, 1 for work that failed, 130 for an interrupt."""
    try:
        return main()
    except HudsimError as error:
        print(f"hudsim: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
