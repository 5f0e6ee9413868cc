"""``Uid``: an unprivileged user id that nobody else on this host uses while it is held."""

from __future__ import annotations

import random
import socket
from typing import Self

from hudsim.errors import SandboxError

__all__ = ["Uid"]

_FIRST, _COUNT = 2_130_000_000, 10_000_000


class Uid:
    """``number`` is ours until :meth:`free`, or until this process ends, however it ends.

    An abstract Unix socket of that name says so: the kernel lets one process have it, and takes it back.
    """

    def __init__(self, number: int, held: socket.socket) -> None:
        self.number = number
        self._held = held

    @classmethod
    def take(cls) -> Self:
        """One that is free. Raises :class:`~hudsim.errors.SandboxError` if none is found."""
        for _ in range(100):
            number = _FIRST + random.randrange(_COUNT)  # noqa: S311 - no secret
            held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                held.bind(f"\0hudsim-uid-{number}")
            except OSError:
                held.close()
                continue
            return cls(number, held)
        raise SandboxError("no free user id was found in a hundred tries")

    def free(self) -> None:
        """Give it back. Idempotent."""
        self._held.close()
