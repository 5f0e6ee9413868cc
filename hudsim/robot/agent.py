"""``RobotAgent``: a model, an adapter and a chunk strategy, playing one episode of a world."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import HudsimError, PolicyFailed, UsageError
from hudsim.robot.adapter import Adapter
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import ChunkStrategy, Interpolated, OpenLoop, RecedingHorizon
from hudsim.robot.client import RobotClient
from hudsim.robot.model import Model
from hudsim.robot.rollout import Rollout
from hudsim.wire.session import Heard

__all__ = ["OnStep", "RobotAgent"]

OnStep = Callable[[Heard, Array | None], Awaitable[None]]
"""Told of each observation and the action sent for it (None: the last one; in realtime, where chunks are sent)."""

_TELL_S = 2.0


class RobotAgent:
    """Plays episodes. It owns what is an episode's own: the chunk in progress, the adapter's memory.

    adapter
        None: the identity, with privileged features if the model needs them.
    chunks
        None: a chunk to its end where the world waits for actions; in realtime a receding horizon, so that
        half of the old chunk covers the time of the inference.
    policy_rate_hz
        The rate that the model's chunks are made for; they are interpolated to the world's. None: the world's.
    """

    def __init__(
        self,
        model: Model,
        adapter: Adapter | None = None,
        chunks: ChunkStrategy | None = None,
        *,
        policy_rate_hz: float | None = None,
    ) -> None:
        self.model = model
        self.adapter = adapter or Adapter(privileged=model.needs_privileged)
        self._asked_chunks = chunks
        self._policy_rate_hz = policy_rate_hz
        self.chunks: ChunkStrategy = chunks or OpenLoop()

    def rechunked(self, chunks: ChunkStrategy | None, policy_rate_hz: float | None) -> RobotAgent:
        """The same agent with another chunk strategy or policy rate (None: its own).

        Raises :class:`~hudsim.errors.UsageError` if it has chosen what is to be changed.
        """
        if chunks is not None and self._asked_chunks is not None:
            raise UsageError(f"this agent has chosen its chunk strategy, {type(self._asked_chunks).__name__}, itself")
        if policy_rate_hz is not None and self._policy_rate_hz is not None:
            raise UsageError(f"this agent has chosen its policy rate, {self._policy_rate_hz:g} Hz, itself")
        self._asked_chunks = chunks or self._asked_chunks
        self._policy_rate_hz = policy_rate_hz or self._policy_rate_hz
        return self

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Learn the world before playing in it. Raises what the model or adapter misses there."""
        self.chunks = self._asked_chunks or (RecedingHorizon() if contract.timing.mode == "realtime" else OpenLoop())
        if self._policy_rate_hz is not None:
            self.chunks = _interpolated(self.chunks, self._policy_rate_hz, contract)
        self.adapter.bind(contract, params)
        self.model.bind(contract, params)

    async def play(self, robot: RobotClient, *, max_steps: int | None = None, on_step: OnStep | None = None) -> Rollout:
        """Play the episode that ``robot`` has claimed to its end, or for ``max_steps`` ticks.

        Raises the world's typed error if it ends the episode, :class:`~hudsim.errors.LinkLost` if it is gone,
        :class:`~hudsim.errors.PolicyFailed` if the policy raises (the world is told first).
        """
        self.chunks.reset()
        self.adapter.reset()
        play = _Play(self, robot, max_steps, on_step)
        try:
            await (play.realtime() if robot.contract.timing.mode == "realtime" else play.lockstep())
        except PolicyFailed:
            await _tell(robot)
            raise
        play.rollout.cadence.merge(robot.cadence)
        play.rollout.seam = self.chunks.seam
        return play.rollout


def _interpolated(chunks: ChunkStrategy, policy_rate_hz: float, contract: Contract) -> ChunkStrategy:
    if contract.control_rate is None:
        raise UsageError(f"policy rate {policy_rate_hz:g} Hz: the world says no control_rate to interpolate to")
    return Interpolated(chunks, policy_rate_hz=policy_rate_hz, control_rate_hz=contract.control_rate)


class _Play:
    """One episode being played."""

    def __init__(self, agent: RobotAgent, robot: RobotClient, max_steps: int | None, on_step: OnStep | None) -> None:
        self._robot, self._agent = robot, agent
        self._max_steps, self._on_step = max_steps, on_step
        self._shape = robot.contract.action.shape or ()
        self._seen = 0
        self._stopped = False
        self.rollout = Rollout()

    async def lockstep(self) -> None:
        """One action for each observation."""
        robot, chunks = self._robot, self._agent.chunks
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
        robot, chunks = self._robot, self._agent.chunks
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
        rollout.prompt = str(heard.meta.get("prompt", rollout.prompt))
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
        agent, stages = self._agent, self.rollout.cadence.stages
        try:
            began_ns = time.monotonic_ns()
            batch = agent.adapter.adapt_observation(heard.data, self.rollout.prompt)
            if isinstance(batch, dict):
                batch.update(agent.chunks.context(self.rollout.ticks))
            adapted_ns = time.monotonic_ns()
            chunks = await agent.model.ainfer(batch)
            inferred_ns = time.monotonic_ns()
            self._check(chunks)
            chunk = agent.adapter.adapt_chunk(chunks[0], heard.data)
            stages["adapt"].record(adapted_ns - began_ns + time.monotonic_ns() - inferred_ns)
            stages["infer"].record(inferred_ns - adapted_ns)
        except (HudsimError, asyncio.CancelledError):
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error
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
        try:
            return self._agent.adapter.adapt_action(action, heard.data)
        except HudsimError:
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error


async def _tell(robot: RobotClient) -> None:
    """Tell the world that the policy failed, and wait until the world has it on record."""
    with contextlib.suppress(HudsimError, TimeoutError):
        async with asyncio.timeout(_TELL_S if robot.rich else 0.0):
            await robot.end("policy_failed")
            while not (await robot.get_observation()).over:
                pass


def _failed(error: BaseException) -> PolicyFailed:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return PolicyFailed(
        f"the policy raised {type(error).__name__}: {error} ({where.filename}:{where.lineno} in {where.name})",
        traceback="".join(traceback.format_exception(error, limit=-8)),
    )
