"""``BatchedModel``: one model for many agents, asked for several of them in one call."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import math
import threading
from collections.abc import Mapping
from typing import Any, Self
from weakref import WeakValueDictionary

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.given import given_a, given_count, refusal
from hudsim.robot.batch_caller import BatchCaller
from hudsim.robot.batch_queue import BatchQueue, Client
from hudsim.robot.bridge import Array
from hudsim.robot.model import Model

__all__ = ["BatchedModel"]


class BatchedModel(Model):
    """``model``, with the rows of several agents in one call, on one thread. Each fork is one more agent's.

    ::

        agent = RobotAgent(BatchedModel(Mine(), max_batch=16))
        await taskset.run(agent, runtime=runtime, max_concurrent=16)

    What has the same features, dtypes and shapes shares a call, in worlds that are equal (contract and params) or, if
    the model has no ``bind`` of its own, in any. A batch goes when it is full, or when it no longer pays to wait for
    those who will ask soon: :class:`~hudsim.robot.batch_queue.BatchQueue` has the rule. After a call that raised each
    agent's rows are tried alone, once, so that only the agent whose rows the model cannot take fails.

    model
        Stateless, as a model is: one whose ``fork`` is its own has something of each agent's, and is refused with
        :class:`~hudsim.errors.UsageError`. It is asked by its ``infer``.
    max_batch
        Rows a call, at most.
    max_wait_s
        The longest that a free model stands still for agents that will ask soon; 0: it never does. None: as long as
        it pays, learned from the model's time and the agents' habits.
    """

    def __init__(self, model: Model, *, max_batch: int = 32, max_wait_s: float | None = None) -> None:
        given_a(Model, model, "model", "a hudsim Model")
        if type(model).fork is not Model.fork:
            raise UsageError(
                f"{type(model).__name__} has a fork of its own, so that each agent's model holds something that is "
                "not the others', and their rows cannot share a call; expected a model with Model's fork"
            )
        given_count(max_batch, "max_batch")
        if max_wait_s is not None and not _is_wait(max_wait_s):
            raise refusal("max_wait_s", max_wait_s, "seconds from 0, or None")
        vars(self)["needs_privileged"] = model.needs_privileged  # the class's, of any other model
        wait_ns = None if max_wait_s is None else round(max_wait_s * 1e9)
        self.model = self._bound = model
        self._binding = threading.Lock()
        self._in_world: WeakValueDictionary[str, Model] = WeakValueDictionary()
        self._caller = BatchCaller(BatchQueue(max_batch, wait_ns))
        self._client = Client()

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """As the model's; agents in equal worlds share what it makes of theirs."""
        rate = contract.control_rate if contract.timing.mode == "realtime" else None
        self._client.period_ns = None if rate is None else 1e9 / rate
        if type(self.model).bind is Model.bind:
            return
        world = json.dumps([contract.to_json(), dict(params)], sort_keys=True)
        key = hashlib.sha256(world.encode()).hexdigest()  # params may hold a whole scene
        with self._binding:
            bound = self._in_world.get(key)
            if bound is None:
                bound = self.model.fork()
                bound.bind(contract, params)
                self._in_world[key] = bound
        self._bound = bound

    def infer(self, batch: Any) -> Array:
        """[N, T, *action shape], from a call that other agents' rows may share. Waits for it."""
        return self._caller.ask(self._client, self._bound, batch).result()

    async def ainfer(self, batch: Any) -> Array:
        return await asyncio.wrap_future(self._caller.ask(self._client, self._bound, batch))

    def fork(self) -> Self:
        """One more agent of the same model: its rows share the others' calls."""
        twin = copy.copy(self)
        vars(twin)["_client"] = Client()
        return twin

    def close(self) -> None:
        """End all that wait, of every fork, with :class:`~hudsim.errors.PolicyFailed`; so does who asks later."""
        self._caller.close()


def _is_wait(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
