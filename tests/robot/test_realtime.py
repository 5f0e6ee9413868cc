"""A world that ticks whatever the agent does."""

from __future__ import annotations

import asyncio
import itertools
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import websockets

from hudsim.errors import PolicyDeadline, UsageError
from hudsim.net import Address
from hudsim.robot.cadence import Cadence
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.codec import decode, encode
from tests.asyncrun import on_loop
from tests.net.http import get
from tests.robot.playing import joined, metric, play, zeros
from tests.robot.worlds import Card, HudPair, SlowReset, inline, spawned

RT: dict[str, Any] = {"mode": "realtime", "rate_hz": 50.0}


def ramp(first: int, rows: int) -> Any:
    """Actions that say for which tick they are."""
    return np.repeat(np.arange(first, first + rows, dtype=np.float32)[:, None], 2, axis=1)


async def feed(robot: RobotClient, until: int, rows: int = 25) -> int:
    """Keep a realtime world fed with a ramp until tick ``until``; the last tick seen."""
    heard = await robot.get_observation()
    while not heard.over and heard.index < until:
        await robot.send_chunk(ramp(heard.index + 1, rows))
        heard = await robot.get_observation()
    return heard.index


async def cadence_of(world: RobotEndpoint, robot: RobotClient, token: str) -> dict[str, Any]:
    await robot.end("max_steps")
    while not (await robot.get_observation()).over:
        pass
    return Cadence.from_json((await world.result(token))["cadence"]).summary()


@on_loop
async def test_50_hz_is_kept_for_two_seconds() -> None:
    async with spawned(**RT) as world, joined(world) as (robot, episode):
        await feed(robot, 100, rows=100)
        kept = await cadence_of(world, robot, episode.token)
        assert kept["rate_asked_hz"] == 50.0
        assert abs(kept["rate_achieved_hz"] * (1 + kept["missed"] / kept["ticks"]) - 50.0) < 1.0
        assert kept["ticks"] + kept["missed"] >= 100
        assert kept["starved"] == 0


@on_loop
async def test_nothing_ticks_before_the_first_chunk_and_the_first_tick_is_its_first_row() -> None:
    async with inline(**RT) as world, joined(world) as (robot, _):
        first = await robot.get_observation()
        await asyncio.sleep(0.3)
        await robot.send_chunk(ramp(1, 50), obs_index=first.index)
        second = await robot.get_observation()
        assert second.data["observation/state"][[0, 3]].tolist() == [second.index, second.index]
        assert second.meta["obs_index"] <= 25, "tick 1 started with the chunk"


@on_loop
async def test_every_tick_executes_the_action_that_was_meant_for_it() -> None:
    async with inline(**RT) as world, joined(world) as (robot, _):
        heard = await robot.get_observation()
        while heard.index < 60:
            chunk = ramp(heard.index + 1, 20)
            if heard.index % 7 == 3:
                await asyncio.sleep(0.07)  # an inference: the chunk arrives when its first rows are past
            await robot.send_chunk(chunk, obs_index=heard.index)
            heard = await robot.get_observation()
            tick, executed = heard.data["observation/state"][[0, 3]].tolist()
            assert tick == heard.index == executed


@on_loop
async def test_a_starved_tick_holds_by_the_dimension_and_is_counted() -> None:
    for hold, after in (("repeat", 3.0), ("zero", 0.0)):
        async with inline(**RT, hold=hold) as world, joined(world) as (robot, episode):
            await robot.get_observation()
            await robot.send_chunk(ramp(1, 3))
            heard = await robot.get_observation()
            while heard.index < 8:
                heard = await robot.get_observation()
            assert heard.data["observation/state"][3] == after
            kept = await cadence_of(world, robot, episode.token)
            assert kept["starved"] >= 5


@on_loop
async def test_a_starved_world_that_stops_on_a_miss_stops() -> None:
    async with inline(**RT, timing={"on_miss": "stop"}) as world, joined(world) as (robot, episode):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 3))
        with pytest.raises(PolicyDeadline, match="stops on a miss"):
            await play_out(robot)
        record = await world.result(episode.token)
        assert (record["end"], record["ticks"]) == ("aborted(policy_deadline)", 3)


async def play_out(robot: RobotClient) -> None:
    while not (await robot.get_observation()).over:
        pass


@on_loop
async def test_a_policy_that_is_always_late_ends_typed_and_does_not_hold_for_ever() -> None:
    async with inline(**RT, timing={"policy_deadline_s": 0.4}) as world, joined(world) as (robot, episode):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 2))

        async def always_stale() -> None:
            while True:
                await robot.send_chunk(ramp(1, 2), obs_index=0)
                await asyncio.sleep(0.05)

        late = asyncio.create_task(always_stale())
        with pytest.raises(PolicyDeadline, match=r"policy_deadline_s is 0\.4"):
            await play_out(robot)
        late.cancel()
        await asyncio.wait([late])
        record = await world.result(episode.token)
        kept = Cadence.from_json(record["cadence"])
        assert kept.stale >= 3
        assert (record["end"], record["score"]) == ("aborted(policy_deadline)", 0.0)


@on_loop
async def test_an_agent_that_sends_nothing_has_the_warm_up() -> None:
    async with inline(**RT, timing={"warmup_s": 0.3}) as world, joined(world) as (robot, _):
        await robot.get_observation()
        with pytest.raises(PolicyDeadline, match="warmup_s"):
            await robot.get_observation()


@on_loop
async def test_no_stale_action_leaks_into_the_next_episode() -> None:
    async with inline(**RT) as world, joined(world, seed=1) as (robot, episode):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 200) + 1000)
        await robot.get_observation()
        await world.result(episode.token)
        await play_out(robot)
        second = await world.reset(seed=2)
        await robot.claim(second.token)
        heard = await robot.get_observation()
        await asyncio.sleep(0.1)
        assert heard.index == 0
        await robot.send_chunk(ramp(1, 50))
        for _ in range(5):
            heard = await robot.get_observation()
            assert heard.data["observation/state"][3] == heard.index


@on_loop
async def test_ticks_that_another_slots_reset_costs_are_counted_as_missed() -> None:
    async with inline(SlowReset, reset_s=0.15, num_envs=2, **RT) as world, joined(world, seed=1) as (robot, episode):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 200))
        await robot.get_observation()
        await world.reset(seed=2)
        heard = await robot.get_observation()
        while heard.index < 12:
            heard = await robot.get_observation()
        kept = await cadence_of(world, robot, episode.token)
        assert kept["missed"] >= 5


@on_loop
async def test_a_client_that_reads_nothing_costs_no_memory_and_gets_the_newest() -> None:
    """Two cameras' worth of pixels fifty times a second for two seconds are 30 MB; two of them are 0.6 MB."""
    big: dict[str, Any] = {"width": 224, "height": 224, "cameras": 2}
    async with (
        inline(mode="realtime", rate_hz=100.0, autostart=True, **big) as world,
        websockets.connect(world.capability().url, max_size=None, max_queue=1) as ws,
    ):
        await ws.recv()
        await ws.send(bytes(encode({"claim": None, "accept": {"protocol": "hudsim/1"}})))
        first = decode(_binary(await ws.recv()))
        token = first["meta"]["episode"]
        await ws.send(bytes(encode({"actions": np.zeros((300, 2), np.float32), "episode": token, "obs_index": 0})))
        await asyncio.sleep(0.5)
        tracemalloc.start()
        await asyncio.sleep(1.0)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert grown < 3_000_000
        indices = [decode(_binary(await ws.recv()))["meta"]["obs_index"] for _ in range(2)]
        assert indices == [1, 2], "what had been sent before the credit ran out"
        await ws.send(bytes(encode({"ack": 2})))
        newest = decode(_binary(await ws.recv()))["meta"]["obs_index"]
        assert newest > 30
        assert await metric(world, "hudsim_observations_skipped_total") >= newest - 5


def _binary(frame: str | bytes) -> bytes:
    assert isinstance(frame, bytes), frame
    return frame


@on_loop
async def test_a_slow_agent_sees_the_newest_and_both_ends_count_what_was_skipped() -> None:
    async with inline(mode="realtime", rate_hz=100.0) as world, joined(world) as (robot, _):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 1000))
        seen = []
        for _ in range(4):
            await asyncio.sleep(0.15)
            seen.append((await robot.get_observation()).index)
        assert all(later - earlier > 5 for earlier, later in itertools.pairwise(seen))
        assert robot.skipped == seen[-1] - len(seen)


async def hammered() -> tuple[int, dict[str, Any]]:
    """How many health checks were answered during 75 ticks at 50 Hz, and how the ticks were kept."""
    async with spawned(**RT, num_envs=2) as world, joined(world) as (robot, episode):
        address = Address.parse(world.capability().url)
        calls = 0

        async def hammer() -> None:
            nonlocal calls
            while True:
                await get(address, "/healthz")
                calls += 1
                await asyncio.sleep(0.005)

        hammering = asyncio.create_task(hammer())
        await feed(robot, 75, rows=80)
        hammering.cancel()
        await asyncio.wait([hammering])
        return calls, await cadence_of(world, robot, episode.token)


@on_loop
async def test_calls_to_health_and_control_do_not_slow_the_ticks() -> None:
    missed = []
    for _ in range(3):  # other work on the machine may spoil one run
        calls, kept = await hammered()
        assert calls > 50
        missed.append(kept["missed"])
        if missed[-1] <= 8:
            return
    pytest.fail(f"ticks missed beside 200 calls a second: {missed}")


@on_loop
async def test_a_stepped_wall_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = itertools.cycle([1e9, 1e9 + 3600.0, 1e9 - 2.0])
    monkeypatch.setattr(time, "time", lambda: next(steps))
    async with inline(**RT) as world, joined(world) as (robot, episode):
        began = time.monotonic()
        await feed(robot, 25, rows=50)
        took = time.monotonic() - began
        kept = await cadence_of(world, robot, episode.token)
        assert 0.4 < took < 5.0
        assert 40 < kept["rate_achieved_hz"] < 51
        for stage in kept["stages_us"].values():
            assert stage is None or stage["max"] < 5e6


@on_loop
async def test_paced_is_lockstep_not_faster_than_the_rate() -> None:
    async with inline(mode="paced", rate_hz=100.0) as world, joined(world) as (robot, episode):
        began = time.monotonic()
        seen = await play(robot, 30)
        assert time.monotonic() - began > 0.28
        assert [heard.index for heard in seen] == list(range(31))
        first = seen[-1]
        await asyncio.sleep(0.1)
        await play(robot, 1, first=first)
        kept = await cadence_of(world, robot, episode.token)
        assert kept["missed"] >= 8, "deadlines without an action are missed"
        assert kept["ticks"] == 31


@on_loop
async def test_a_world_without_a_rate_or_with_a_barrier_says_what_it_needs() -> None:
    with pytest.raises(UsageError, match="control_rate"):
        await RobotEndpoint.inline(Rateless(), mode="realtime").start()
    with pytest.raises(UsageError, match="together"):
        await RobotEndpoint.inline(Batch(), mode="realtime").start()


class Rateless(HudPair):
    contract = {**HudPair.contract, "control_rate": None}  # noqa: RUF012


class Batch(HudPair):
    num_envs = 2

    def reset(self, seed: int = 0) -> str:
        super().reset(seed)
        self._at = np.zeros((2, 2), np.float32)
        return "go"


@on_loop
async def test_the_observations_say_how_the_world_stands() -> None:
    async with inline(**RT) as world, joined(world) as (robot, _):
        await robot.get_observation()
        await robot.send_chunk(ramp(1, 10), obs_index=0)
        heard = await robot.get_observation()
        while heard.index < 4:
            heard = await robot.get_observation()
        meta = heard.meta
        assert meta["queue_remaining"] == 10 - heard.index
        assert meta["unexecuted_chunk"][:, 0].tolist() == list(range(heard.index + 1, 11))
        assert meta["action_age_ticks"] == heard.index - 1
        assert meta["sim_time"] == heard.index / 50.0
        assert Card.read(heard.data["observation/camera0"]).tick == heard.index
        await robot.send_action(zeros(robot))
        assert (await robot.get_observation()).index > heard.index
