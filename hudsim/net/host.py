"""``host_id``: which processes can reach each other's loopback ports."""

from __future__ import annotations

import functools
import secrets
from pathlib import Path

from hudsim.loop import clock_id

__all__ = ["host_id"]


@functools.cache
def host_id() -> str:
    """Two processes that say the same reach each other at 127.0.0.1.

    On Linux the kernel's boot id and the network namespace: two containers on one machine differ. Elsewhere one
    that no other process shares. A process that moves into another namespace says so only if it has not asked yet.
    """
    try:
        namespace = Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return secrets.token_hex(16)
    return f"{clock_id()}:{namespace}"
