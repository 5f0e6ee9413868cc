"""``start``: a benchmark from its imports on, which SIGTERM ends as an interrupt does."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FrameType
from typing import NoReturn

__all__ = ["start"]


def start(command: str, arguments: list[str] | None) -> int:
    """Import the module ``command`` and return what its ``main`` does.

    Raises KeyboardInterrupt for SIGTERM, too: what the benchmark started ends with it. During the imports, which take
    some seconds where much is imported, either signal ends the process at once with 130.
    """
    with _handled(signal.default_int_handler, signal.SIGTERM):
        with _handled(_end_at_once, signal.SIGINT, signal.SIGTERM):
            main: Callable[[list[str] | None], int] = import_module(command).main
        return main(arguments)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Nothing is there that had to be cleaned up, and an exception would not always come through an import."""
    os.write(2, b"interrupted\n")
    os._exit(130)


@contextlib.contextmanager
def _handled(by: Callable[[int, FrameType | None], object], *signals: signal.Signals) -> Iterator[None]:
    """Those of ``signals`` that are not ignored."""
    before = {number: signal.getsignal(number) for number in signals}
    kept = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in kept:
        signal.signal(number, by)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
