"""``Scope``: what an ``async with`` has up within it, and gone after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Scope"]


class Scope(ABC):
    """Box, room, sandbox and workspace: ``start`` when the block begins, ``stop`` however it ends. Both idempotent."""

    async def start(self) -> None:
        """Bring it up. What comes up with its first use has nothing to do here."""

    @abstractmethod
    async def stop(self) -> None:
        """End everything in it, and leave nothing of it."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()
