"""``Model``: a policy's forward pass, without memory and without a clock."""

from __future__ import annotations

import asyncio
import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from hudsim.contract import Contract
from hudsim.loop import Worker
from hudsim.robot.bridge import Array

__all__ = ["Model"]


class Model(ABC):
    """Turns a batch of adapted observations into a chunk of actions for each.

    Stateless across calls: what is an episode's own (the chunk being executed, a recurrent state) belongs to
    the agent, so that one model can serve many agents at once. ``bind`` may keep what is the *world's*.

    needs_privileged
        True: the policy reads features that a real robot would not have; ``hudsim run`` then asks the world
        for them (``privileged=True``) and the adapter passes them on.
    """

    needs_privileged: ClassVar[bool] = False

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Learn the world, once after connecting: its contract and the capability's ``params``.

        Raise :class:`~hudsim.errors.UsageError` if this policy cannot drive that world, saying what is missing.
        """
        return

    @abstractmethod
    def infer(self, batch: Any) -> Array:
        """A chunk [N, T, *action shape] for the ``N`` observations of ``batch`` (``{feature: [N, ...]}``).

        T is the chunk's length in control ticks, at least 1; it may differ from call to call.
        """

    async def ainfer(self, batch: Any) -> Array:
        """:meth:`infer` on this model's own thread, so that the event loop goes on. Returns [N, T, *action shape].

        The chunk is the caller's own: :meth:`infer` may return the same array again.
        """
        return await asyncio.wrap_future(self._own_worker().submit(self._inferred, batch))

    def _inferred(self, batch: Any) -> Array:
        return copy.copy(self.infer(batch))

    def fork(self) -> Self:
        """This model for one more world: what ``bind`` keeps is the fork's own; weights and thread are shared.

        A shallow copy, so that a fork costs nothing: ``bind`` must set attributes, not change what is in them. A
        model that holds another one forks that too.
        """
        self._own_worker()
        return copy.copy(self)

    def _own_worker(self) -> Worker:
        worker: Worker = self.__dict__.setdefault("_worker", Worker("model"))
        return worker
