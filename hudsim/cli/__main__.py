"""``python -m hudsim.cli``: the ``hudsim`` command without its script."""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """The command from its very beginning: an interrupt may come while it is still being imported."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from hudsim.cli.main import app

        app(prog_name="hudsim")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201 - nothing else is imported yet
        sys.exit(130)


if __name__ == "__main__":
    main()
