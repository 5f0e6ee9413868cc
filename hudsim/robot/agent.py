"""``RobotAgent``: a model, an adapter and a chunk strategy, playing episodes of worlds."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, Self

from hudsim.contract import Contract
from hudsim.errors import HudsimError, LinkLost, UsageError
from hudsim.robot.adapter import Adapter
from hudsim.robot.batched import BatchedModel
from hudsim.robot.cadence import Cadence
from hudsim.robot.chunks import ChunkStrategy, Interpolated, OpenLoop, RecedingHorizon
from hudsim.robot.client import RobotClient
from hudsim.robot.driver import Driver, OnStep, policys_own
from hudsim.robot.model import Model
from hudsim.robot.robot_run import RobotRun, find_robot, find_token
from hudsim.robot.rollout import Rollout
from hudsim.wire.session import PROTOCOLS

__all__ = ["RobotAgent"]

_TELL_S = 2.0
_TELL_CANCELLED_S = 0.5  # whoever cancels waits


class RobotAgent:
    """Plays episodes. It owns what is an episode's own: the chunk in progress, the adapter's memory.

    ``await agent(run)`` plays the robot of a graded run, and does so for many runs at once: each is played by a
    :meth:`fork`. ``bind`` and ``play`` are for who has a connection: one episode after another.

    adapter
        None: the identity, with privileged features if the model needs them.
    chunks
        None: a chunk to its end where the world waits for actions; in realtime a receding horizon, so that
        half of the old chunk covers the time of the inference.
    policy_rate_hz
        The rate that the model's chunks are made for; they are interpolated to the world's. None: the world's.
    max_steps
        Ticks that it plays of a run, if the task's ``agent_config`` does not say. None: to the world's own end.
    robot
        Which of a run's robots it plays, by the capability's name. None: the one with an episode for the run.
    """

    def __init__(
        self,
        model: Model,
        adapter: Adapter | None = None,
        chunks: ChunkStrategy | None = None,
        *,
        policy_rate_hz: float | None = None,
        max_steps: int | None = None,
        robot: str | None = None,
    ) -> None:
        self.model = model
        self.adapter = adapter or Adapter(privileged=model.needs_privileged)
        self._asked_chunks = chunks
        self._policy_rate_hz = policy_rate_hz
        self._max_steps = _whole("max_steps", max_steps)
        self._robot = robot
        self.chunks: ChunkStrategy = chunks or OpenLoop()

    needs_protocols: ClassVar[tuple[str, ...]] = PROTOCOLS
    """What a run must have one of."""

    @property
    def name(self) -> str:
        """What it is called in a job's record: its model's class, batched or not."""
        return type(self.model.model if isinstance(self.model, BatchedModel) else self.model).__name__

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

    def batched(self, max_batch: int) -> Self:
        """The same agent, whose forks' questions share calls of its model, up to ``max_batch`` rows a call.

        Raises :class:`~hudsim.errors.UsageError` for a model whose rows cannot: see
        :class:`~hudsim.robot.batched.BatchedModel`.
        """
        twin = copy.copy(self)
        twin.model = BatchedModel(self.model, max_batch=max_batch)
        return twin

    def fork(self) -> Self:
        """The same policy for one more episode at the same time, of any world: see the ``fork`` of its parts.

        ``bind`` forks the chunk strategy.
        """
        twin = copy.copy(self)
        twin.model, twin.adapter = self.model.fork(), self.adapter.fork()
        return twin

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        """Learn the world before playing in it. Raises what the model or adapter misses there."""
        if self._asked_chunks is not None:
            self.chunks = self._asked_chunks.fork()
        else:
            self.chunks = RecedingHorizon() if contract.timing.mode == "realtime" else OpenLoop()
        if self._policy_rate_hz is not None:
            self.chunks = _interpolated(self.chunks, self._policy_rate_hz, contract)
        self.adapter.bind(contract, params)
        self.model.bind(contract, params)

    async def play(
        self,
        robot: RobotClient,
        *,
        prompt: str | None = None,
        max_steps: int | None = None,
        on_step: OnStep | None = None,
    ) -> Rollout:
        """Play the episode that ``robot`` has claimed to its end, or for ``max_steps`` ticks.

        ``prompt`` is what the policy is told to do; None: what the world says. Raises the world's typed error if it
        ends the episode, :class:`~hudsim.errors.LinkLost` if it is gone, :class:`~hudsim.errors.PolicyFailed` if the
        policy raises (the world is told first).
        """
        async with world_told(robot):
            self.chunks.reset()
            self.adapter.reset()
            driver = Driver(
                robot, self.model, self.adapter, self.chunks, prompt=prompt, max_steps=max_steps, on_step=on_step
            )
            await (driver.realtime() if robot.contract.timing.mode == "realtime" else driver.lockstep())
        driver.rollout.cadence.merge(robot.cadence)
        driver.rollout.seam = self.chunks.seam
        return driver.rollout

    async def __call__(self, run: RobotRun, /) -> None:
        """Play the robot of ``run``, and note in its trace what came of it; ``run.end`` says if it was its limit.

        What the world has of the episode is its record, which the task's template asks for. One that is cancelled
        ends the episode as at its limit: what was reached is graded. Raises as :meth:`play`;
        :class:`~hudsim.errors.UsageError` if the run has no robot, or several and none was named.
        """
        name = find_robot(run, self._robot)
        asked = (run.task.agent_config or {}).get("max_steps")
        max_steps = self._max_steps if asked is None else _whole("agent_config: max_steps", asked)
        player, began_s = self.fork(), run.trace.now_s()
        async with await RobotClient.connect(await run.reach(name), token=find_token(run, name)) as robot:
            try:
                async with world_told(robot):
                    with policys_own():
                        player.bind(robot.contract, robot.params)
                with policys_own():
                    rollout = await player.play(robot, prompt=run.prompt_text or None, max_steps=max_steps)
            except asyncio.CancelledError:
                await _tell(robot, "max_steps", _TELL_CANCELLED_S)
                raise
            except HudsimError as error:
                told = {"robot": name, "error": error.name, "traceback": error.data.get("traceback")}
                run.note("robot", error=error.message, data=told, started_s=began_s)
                raise
        end = _end_of(rollout)
        if end == "max_steps":
            run.end = "max_steps"
        words = f"{rollout.ticks} ticks, reward {rollout.reward:.3g}, {end}"
        run.note("robot", content=words, data={"robot": name, **_account(rollout)}, started_s=began_s)


def _whole(name: str, value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise UsageError(f"{name}: got {value!r}, expected a whole number from 1")
    return value


def _interpolated(chunks: ChunkStrategy, policy_rate_hz: float, contract: Contract) -> ChunkStrategy:
    if contract.control_rate is None:
        raise UsageError(f"policy rate {policy_rate_hz:g} Hz: the world says no control_rate to interpolate to")
    return Interpolated(chunks, policy_rate_hz=policy_rate_hz, control_rate_hz=contract.control_rate)


@contextlib.asynccontextmanager
async def world_told(robot: RobotClient) -> AsyncIterator[None]:
    """Whatever goes wrong in here, the world hears of it. What it said itself it knows: a word more does no harm."""
    try:
        yield
    except LinkLost:
        raise
    except Exception:
        await _tell(robot, "policy_failed", _TELL_S)
        raise


async def _tell(robot: RobotClient, reason: str, within_s: float) -> None:
    """Tell the world why the episode ends here, and wait until the world has it on record."""
    with contextlib.suppress(HudsimError, TimeoutError):
        async with asyncio.timeout(within_s if robot.rich else 0.0):
            await robot.end(reason)
            while not (await robot.get_observation()).over:
                pass


def _end_of(rollout: Rollout) -> str:
    """How the episode ended: the world's word, or what was seen of one that keeps no record."""
    if rollout.result is not None:
        return str(rollout.result.get("end"))
    return "terminated" if rollout.terminated else "truncated" if rollout.truncated else "max_steps"


def _account(rollout: Rollout) -> dict[str, Any]:
    """What came of the episode, as plain JSON; the cadence is the agent's and, if the world told it, the world's."""
    result = rollout.result or {}
    cadence = Cadence()
    cadence.merge(rollout.cadence)
    if "cadence" in result:
        cadence.merge(Cadence.from_json(result["cadence"]))
    return {
        "episode": result.get("episode"),
        "end": _end_of(rollout),
        "ticks": rollout.ticks,
        "reward": _finite(rollout.reward),
        "success": result.get("success"),
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "seam": _finite(rollout.seam),
        "cadence": cadence.summary(),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
