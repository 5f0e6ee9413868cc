"""A model, an adapter and a strategy, playing real worlds."""

from __future__ import annotations

import asyncio
import ctypes
import time
from typing import Any

import numpy as np
import pytest

from hudsim.errors import ContractError, PolicyDeadline, PolicyFailed
from hudsim.net import Address, connect
from hudsim.robot.adapter import Adapter
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import OpenLoop, RecedingHorizon
from hudsim.robot.client import RobotClient
from hudsim.robot.model import Model
from hudsim.wire.session import Heard
from tests.asyncrun import on_loop
from tests.net.http import get
from tests.robot.playing import joined
from tests.robot.worlds import inline, spawned


class Ramp(Model):
    """a[t] = t, in chunks; each inference takes ``seconds``, without the GIL."""

    def __init__(self, length: int = 5, seconds: float = 0.0) -> None:
        self.length, self.seconds, self.calls = length, seconds, 0

    def infer(self, batch: Any) -> Array:
        self.calls += 1
        time.sleep(self.seconds)
        tick = batch["observation/state"][:, 0, None, None] + np.arange(1, self.length + 1)[:, None]
        return np.repeat(tick, 2, axis=2).astype(np.float32)


class Seen:
    """Keeps what the agent was shown."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    async def __call__(self, heard: Heard, action: Array | None) -> None:
        self.heard.append(heard)

    @property
    def executed(self) -> list[tuple[float, float]]:
        """(tick, the action that the world executed at it)."""
        states = [heard.data["observation/state"] for heard in self.heard[1:]]
        return [(float(state[0]), float(state[3])) for state in states]


@on_loop
async def test_a_chunk_is_played_action_by_action_in_lockstep() -> None:
    async with inline(max_ticks=12) as world, joined(world) as (robot, _):
        agent, seen = RobotAgent(Ramp(5)), Seen()
        agent.bind(robot.contract, robot.params)
        rollout = await agent.play(robot, on_step=seen)
        assert seen.executed == [(float(t), float(t)) for t in range(1, 13)]
        assert (rollout.ticks, rollout.truncated, rollout.terminated, rollout.reward) == (12, True, False, 12.0)
        assert rollout.prompt == "read the card"
        assert rollout.result is not None
        assert rollout.result["end"] == "truncated"
        assert rollout.cadence.stages["infer"].count == 3
        assert rollout.cadence.stages["wire"].count == 13


@on_loop
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.12])
async def test_in_realtime_a_slow_policy_executes_at_every_tick_what_was_meant_for_it(seconds: float) -> None:
    async with inline(mode="realtime", rate_hz=50.0, max_ticks=60) as world, joined(world) as (robot, episode):
        agent, seen = RobotAgent(Ramp(20, seconds), chunks=RecedingHorizon(8)), Seen()
        agent.bind(robot.contract, robot.params)
        rollout = await agent.play(robot, on_step=seen)
        assert rollout.ticks == 60
        for tick, action in seen.executed:
            assert action <= tick
        meant = sum(tick == action for tick, action in seen.executed)
        assert meant >= 0.9 * len(seen.executed)
        record = await world.result(episode.token)
        assert record["end"] == "truncated"


@on_loop
async def test_an_agent_stops_after_its_own_steps() -> None:
    for mode in ("lockstep", "realtime"):
        async with inline(mode=mode) as world, joined(world) as (robot, episode):
            agent = RobotAgent(Ramp(50))
            agent.bind(robot.contract, robot.params)
            rollout = await agent.play(robot, max_steps=7)
            record = await world.result(episode.token)
            assert record["end"] == "max_steps"
            assert 7 <= record["ticks"] <= 12
            assert rollout.ticks >= 7


@on_loop
async def test_an_inference_of_seconds_leaves_its_connection_and_everybody_else_alone() -> None:
    async with inline(num_envs=2) as world, joined(world) as (robot, _):
        agent = RobotAgent(Ramp(5, seconds=3.0))
        agent.bind(robot.contract, robot.params)
        address = Address.parse(world.capability().url)
        playing = asyncio.create_task(agent.play(robot, max_steps=2))
        await asyncio.sleep(0.2)
        assert (await get(address, "/healthz"))[0] == 200
        await (await connect(address)).close()
        second = await world.reset(seed=1)
        async with await RobotClient.connect(world.capability(), token=second.token) as other:
            await other.get_observation()
        assert not playing.done(), "all that while one inference ran"
        assert (await playing).ticks == 2


class HoldsTheGil(Ramp):
    def infer(self, batch: Any) -> Array:
        ctypes.PyDLL(None).usleep(700_000)  # keeps the GIL, as a badly written extension does
        return super().infer(batch)


@on_loop
async def test_an_inference_that_holds_the_gil_of_the_whole_process_costs_no_connection() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        agent = RobotAgent(HoldsTheGil(1))
        agent.bind(robot.contract, robot.params)
        assert (await agent.play(robot, max_steps=2)).ticks == 2
        assert (await world.result(episode.token))["end"] == "max_steps"


class Raises(Ramp):
    def infer(self, batch: Any) -> Array:
        if self.calls == 1:
            raise ValueError("no such weight")
        return super().infer(batch)


class WrongShape(Ramp):
    def infer(self, batch: Any) -> Array:
        chunk: Array = super().infer(batch)[0]
        return chunk


@on_loop
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
@pytest.mark.parametrize(("kind", "words"), [(Raises, "ValueError: no such weight"), (WrongShape, "expected")])
async def test_a_policy_that_raises_ends_the_episode_as_such(mode: str, kind: type[Ramp], words: str) -> None:
    async with inline(mode=mode, timing={"policy_deadline_s": 10.0}) as world, joined(world) as (robot, episode):
        agent = RobotAgent(kind(4))
        agent.bind(robot.contract, robot.params)
        with pytest.raises(PolicyFailed, match=words):
            await agent.play(robot)
        record = await world.result(episode.token)
        assert record["end"] == "aborted(policy_failed)"


@on_loop
async def test_a_policy_beyond_its_deadline_gets_the_typed_error() -> None:
    async with (
        inline(timing={"warmup_s": 0.3, "policy_deadline_s": 0.3}) as world,
        joined(world) as (robot, episode),
    ):
        agent = RobotAgent(Ramp(1, seconds=0.8))
        agent.bind(robot.contract, robot.params)
        with pytest.raises(PolicyDeadline):
            await agent.play(robot)
        assert (await world.result(episode.token))["end"] == "aborted(policy_deadline)"


@on_loop
async def test_an_action_that_the_world_refuses_is_the_worlds_typed_error() -> None:
    async with inline(limit=3.0) as world, joined(world) as (robot, _):
        agent = RobotAgent(Ramp(5))
        agent.bind(robot.contract, robot.params)
        with pytest.raises(ContractError, match=r"4\.0"):
            await agent.play(robot)


class Doubles(Adapter):
    """Counts its calls, and gives the world half of what the policy says."""

    def __init__(self) -> None:
        super().__init__()
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def adapt_chunk(self, chunk: Array, data: Any) -> Array:
        return chunk / 2

    def adapt_action(self, action: Array, data: Any) -> Array:
        return action + np.float32(0.25)


@on_loop
async def test_the_adapter_stands_between_the_policy_and_the_world() -> None:
    async with inline(max_ticks=3) as world, joined(world) as (robot, _):
        adapter, seen = Doubles(), Seen()
        agent = RobotAgent(Ramp(5), adapter, OpenLoop())
        agent.bind(robot.contract, robot.params)
        await agent.play(robot, on_step=seen)
        assert [action for _, action in seen.executed] == [0.75, 1.25, 1.75]
        assert adapter.resets == 1


@on_loop
async def test_one_agent_plays_many_episodes_and_carries_nothing_over() -> None:
    async with spawned(max_ticks=6) as world:
        agent = RobotAgent(Ramp(4))
        for seed in range(3):
            async with joined(world, seed=seed) as (robot, episode):
                seen = Seen()
                agent.bind(robot.contract, robot.params)
                await agent.play(robot, on_step=seen)
                assert seen.executed == [(float(t), float(t)) for t in range(1, 7)]
                await world.result(episode.token)


class Hangs(Ramp):
    def infer(self, batch: Any) -> Array:
        if self.calls == 1:
            time.sleep(20.0)
        return super().infer(batch)


@on_loop
@pytest.mark.parametrize("mode", ["lockstep", "paced"])
async def test_a_policy_that_hangs_in_its_second_inference_is_not_waited_for(mode: str) -> None:
    timing = {"policy_deadline_s": 0.3, "warmup_s": 60.0}
    async with inline(mode=mode, timing=timing) as world, joined(world) as (robot, episode):
        agent = RobotAgent(Hangs(1))
        agent.bind(robot.contract, robot.params)
        async with asyncio.timeout(5.0):
            with pytest.raises(PolicyDeadline, match=r"observation 1 within policy_deadline_s = 0\.3 s"):
                await agent.play(robot)
        assert (await world.result(episode.token))["end"] == "aborted(policy_deadline)"


class Exits(Ramp):
    def infer(self, batch: Any) -> Array:
        raise SystemExit(3)


@on_loop
async def test_a_policy_that_calls_exit_has_failed() -> None:
    async with inline() as world, joined(world) as (robot, _):
        agent = RobotAgent(Exits(1))
        agent.bind(robot.contract, robot.params)
        with pytest.raises(PolicyFailed, match="SystemExit: 3"):
            await agent.play(robot)
