"""``Driver``: plays one episode to its end: observations to the policy, its actions to the world."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np

from hudsim.contract.arrays import describe
from hudsim.errors import ContractError, HudsimError, PolicyFailed
from hudsim.robot.adapter import Adapter
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import ChunkStrategy
from hudsim.robot.client import RobotClient
from hudsim.robot.model import Model
from hudsim.robot.rollout import Rollout
from hudsim.wire.session import Heard

__all__ = ["Driver", "OnStep", "policys_own"]

OnStep = Callable[[Heard, Array | None], Awaitable[None]]
"""Told of each observation and the action sent for it (None: the last one; in realtime, where chunks are sent)."""


class Driver:
    """One episode being played, with a model, an adapter and a strategy that are bound to its world.

    prompt
        What the policy is told to do. None: what the world says.
    max_steps, on_step
        As :meth:`~hudsim.robot.agent.RobotAgent.play` takes them.
    """

    def __init__(
        self,
        robot: RobotClient,
        model: Model,
        adapter: Adapter,
        chunks: ChunkStrategy,
        *,
        prompt: str | None = None,
        max_steps: int | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self._robot = robot
        self._model, self._adapter, self._chunks = model, adapter, chunks
        self._prompt, self._max_steps, self._on_step = prompt, max_steps, on_step
        self._shape = robot.contract.action.shape or ()
        self._seen = 0
        self._stopped = False
        self.rollout = Rollout()

    async def lockstep(self) -> None:
        """One action for each observation."""
        robot, chunks = self._robot, self._chunks
        heard = await robot.get_observation()
        while not self._over(heard):
            tick = self.rollout.ticks
            if await self._enough():
                if not robot.rich:
                    break
                heard = await robot.get_observation()
                continue
            if chunks.due(tick):
                chunk = await self._infer_while_linked(heard)
                if chunk is None:
                    heard = await robot.get_observation()  # raises why the link has ended
                    continue
                chunks.add(chunk, tick, tick)
            action = self._adapted(chunks.action(tick + 1), heard)
            await robot.send_action(action)
            await self._tell(heard, action)
            heard = await robot.get_observation()
        await self._tell(heard, None)

    async def realtime(self) -> None:
        """Observations as they come; an inference beside them whenever one is due."""
        robot, chunks = self._robot, self._chunks
        seeing = asyncio.ensure_future(robot.get_observation())
        thinking: asyncio.Future[Array] | None = None
        thought_of = 0
        try:
            while True:
                waiting: set[asyncio.Future[Any]] = {seeing} if thinking is None else {seeing, thinking}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if thinking is not None and thinking.done():
                    chunks.add(thinking.result(), thought_of, self.rollout.ticks)
                    await robot.send_chunk(chunks.rest(thought_of), obs_index=thought_of)
                    thinking = None
                if not seeing.done():
                    continue
                heard = seeing.result()
                over = self._over(heard)
                await self._tell(heard, None)
                if over:
                    return
                if await self._enough() and not robot.rich:
                    return
                if thinking is None and chunks.due(self.rollout.ticks):
                    thought_of = self.rollout.ticks
                    thinking = asyncio.ensure_future(self._infer(heard))
                seeing = asyncio.ensure_future(robot.get_observation())
        finally:
            for task in (seeing, thinking):
                if task is not None:
                    task.cancel()

    def _over(self, heard: Heard) -> bool:
        """Account for an observation; whether it is the last."""
        rollout = self.rollout
        rollout.reward += heard.reward
        rollout.prompt = self._prompt or str(heard.meta.get("prompt", rollout.prompt))
        if heard.data:
            rollout.ticks = heard.index if heard.index >= 0 else self._seen
            self._seen += 1
        rollout.terminated, rollout.truncated = heard.terminated, heard.truncated
        rollout.result = dict(heard.result) if heard.result else None
        return heard.over

    async def _enough(self) -> bool:
        """End the episode once it has had its ``max_steps``; whether it has. A rich world answers with its record."""
        if self._max_steps is None or self.rollout.ticks < self._max_steps:
            return False
        if not self._stopped:
            self._stopped = True
            await self._robot.end("max_steps")
        return True

    async def _tell(self, heard: Heard, action: Array | None) -> None:
        if self._on_step is not None and heard.data:
            await self._on_step(heard, action)

    async def _infer_while_linked(self, heard: Heard) -> Array | None:
        """As :meth:`_infer`; None if the link ends first. A model that hangs is not waited for."""
        thinking = asyncio.ensure_future(self._infer(heard))
        linked = asyncio.ensure_future(self._robot.over())
        try:
            await asyncio.wait({thinking, linked}, return_when=asyncio.FIRST_COMPLETED)
            return thinking.result() if thinking.done() else None
        finally:
            thinking.cancel()
            linked.cancel()

    async def _infer(self, heard: Heard) -> Array:
        """The adapted chunk [T, *action shape] for an observation."""
        adapter, stages = self._adapter, self.rollout.cadence.stages
        with policys_own():
            began_ns = time.monotonic_ns()
            batch = adapter.adapt_observation(heard.data, self.rollout.prompt)
            if isinstance(batch, dict):
                batch.update(self._chunks.context(self.rollout.ticks))
            adapted_ns = time.monotonic_ns()
            chunks = await self._model.ainfer(batch)
            inferred_ns = time.monotonic_ns()
            self._check(chunks)
            chunk = adapter.adapt_chunk(chunks[0], heard.data)
            stages["adapt"].record(adapted_ns - began_ns + time.monotonic_ns() - inferred_ns)
            stages["infer"].record(inferred_ns - adapted_ns)
        if np.shape(chunk)[1:] != self._shape:  # before it is laid over another one, of another shape
            action = self._robot.contract.action
            got, expected = describe(np.asarray(chunk)[0]), f"{action.dtype}{list(self._shape)}"
            raise ContractError(self._robot.contract.action_name, got=got, expected=expected)
        return chunk

    def _check(self, chunks: object) -> None:
        if not isinstance(chunks, np.ndarray):
            raise PolicyFailed(f"infer: got {type(chunks).__name__} {chunks!r:.60}, expected an array [1, T, …]")
        if chunks.dtype.kind not in "biuf":
            raise PolicyFailed(f"infer: got an array of {chunks.dtype}, expected numbers")
        if chunks.ndim != 2 + len(self._shape) or chunks.shape[0] != 1 or chunks.shape[1] < 1:
            expected = ", ".join(["1", "T", *map(str, self._shape)])
            raise PolicyFailed(f"infer: got {chunks.dtype}{list(chunks.shape)}, expected [{expected}]")

    def _adapted(self, action: Array, heard: Heard) -> Array:
        with policys_own():
            return self._adapter.adapt_action(action, heard.data)


@contextlib.contextmanager
def policys_own() -> Iterator[None]:
    """What the policy's code raises in here comes out as :class:`~hudsim.errors.PolicyFailed`, which says where.

    Typed errors come out as they are.
    """
    try:
        yield
    except HudsimError:
        raise
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise PolicyFailed(
            f"the policy raised {type(error).__name__}: {error} ({where.filename}:{where.lineno} in {where.name})",
            traceback="".join(traceback.format_exception(error, limit=-8)),
        ) from error
