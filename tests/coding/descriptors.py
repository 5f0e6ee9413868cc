"""A process that has hardly a descriptor left."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

__all__ = ["few_descriptors"]


@contextlib.contextmanager
def few_descriptors(left: int) -> Iterator[None]:
    """No more than so many are to be had within."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    try:
        most = max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + 32
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        for _ in range(left):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)
