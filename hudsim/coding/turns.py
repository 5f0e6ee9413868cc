"""``Turns``: who may use something now: one alone, or some beside each other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

__all__ = ["Turns"]


class Turns:
    """
    ::

        async with turns.alone(): ...      # nobody else meanwhile
        async with turns.beside(): ...     # as many as there are, and nobody alone
    """

    def __init__(self) -> None:
        self._is_alone = False
        self._beside = 0
        self._left = asyncio.Event()  # by the next one who leaves; then there is another

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Waits for everybody."""
        while self._is_alone or self._beside:
            await self._left.wait()
        self._is_alone = True
        try:
            yield
        finally:
            self._is_alone = False
            self._tell()

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Waits for who is alone."""
        while self._is_alone:
            await self._left.wait()
        self._beside += 1
        try:
            yield
        finally:
            self._beside -= 1
            self._tell()

    def _tell(self) -> None:
        self._left.set()
        self._left = asyncio.Event()
