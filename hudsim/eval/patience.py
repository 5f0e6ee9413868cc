"""``Patience``: how long one waits for a database that another process has locked."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

__all__ = ["BUSY_S", "POLL_S", "Patience"]

log = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_S = 10.0
"""How long one waits before that is said; and how long for something to read, in seconds."""
LONGEST_S = 600.0
"""How long a run that is over waits to be kept, in seconds. Without an end, a job would hang for good."""
POLL_S = 0.1
"""How long SQLite itself waits, so that a wait can be cut short."""
_HURRY_S = 1.0


class Patience:
    """Of one thing to be done, on one thread; :meth:`hurry` may be called from any.

    seconds
        How long to try.
    """

    def __init__(self, seconds: float = LONGEST_S) -> None:
        self._seconds = seconds
        self._hurried_s: float | None = None

    def hurry(self) -> None:
        """Somebody waits for the end of it: give up within a second, unless it can be done by then."""
        self._hurried_s = self._hurried_s or time.monotonic() + _HURRY_S

    def have(self, path: Path, work: Callable[[], T]) -> T:
        """What ``work`` returns; while another process has the database at ``path`` locked it is tried again.

        SQLite itself waits for most locks (its busy timeout), but not while a peer recovers the journal of one that
        was killed, deletes it at its end, or turns a new file to WAL. Raises what ``work`` raises, at last also that
        the database is locked.
        """
        began_s, is_said = time.monotonic(), False
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or self._is_over(began_s):
                    raise
            if not is_said and time.monotonic() > began_s + BUSY_S:
                log.warning("%s has been locked by another process for %g s; it is tried again", path, BUSY_S)
                is_said = True
            time.sleep(0.02)

    def _is_over(self, began_s: float) -> bool:
        ends_s = began_s + self._seconds
        return time.monotonic() > (ends_s if self._hurried_s is None else min(ends_s, self._hurried_s))
