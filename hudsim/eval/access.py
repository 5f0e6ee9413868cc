"""``Access``: what of the control channel an agent has while it works."""

from __future__ import annotations

from typing import Any

from hudsim.capability import Capability
from hudsim.environment.client import ControlClient
from hudsim.errors import TaskError

__all__ = ["Access"]


class Access:
    """Ways to what the environment serves, and to the reference. Starting, grading and cancelling are the harness's."""

    def __init__(self, client: ControlClient) -> None:
        self.__client: ControlClient | None = client

    @property
    def same_host(self) -> bool:
        """Whether the environment's own ports can be dialled from here."""
        return bool(self._live().manifest["same_host"])

    async def reach(self, capability: Capability) -> Capability:
        """``capability`` with a URL that can be dialled from here."""
        return await self._live().reach(capability)

    async def reference(self) -> Any:
        """What the task's author would answer or do."""
        return await self._live().reference()

    def revoke(self) -> None:
        """The agent has had its time. Idempotent."""
        self.__client = None

    def _live(self) -> ControlClient:
        if self.__client is None:
            raise TaskError("the run is not live any more: its agent has had its time")
        return self.__client
