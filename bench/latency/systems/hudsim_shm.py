"""hudsim through shared memory: large arrays are written once and read where they stand."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from hudsim.bench.latency.systems.hudsim_socket import PACKAGES, Trip, new_event_loop, played

__all__ = ["PACKAGES", "new_event_loop", "opened"]


def opened(payload: dict[str, Any], serve: object) -> AbstractAsyncContextManager[Trip]:
    """As over the socket, but for that."""
    return played(payload, shared_memory=True)
