"""How an episode ends, whose fault that was, and that its last observation is its own."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from hudsim.errors import LinkLost, PolicyDeadline, ShuttingDown, SimDiverged, SimFailed, SimHung
from hudsim.robot.client import RobotClient
from hudsim.robot.ending import End
from hudsim.testing import FaultyLink
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play, zeros
from tests.robot.worlds import Card, inline

FAST = {"policy_deadline_s": 0.3, "warmup_s": 1.2}


@on_loop
async def test_a_time_limit_is_truncation_with_the_true_last_observation() -> None:
    async with inline(max_ticks=5) as world, joined(world, seed=9) as (robot, episode):
        last = (await play(robot, 20))[-1]
        assert (last.terminated, last.truncated, last.index) == (False, True, 5)
        assert Card.read(last.data["observation/camera0"]).tick == 5
        assert last.result is not None
        record = await world.result(episode.token)
        assert (record["end"], record["ticks"], record["total_reward"]) == ("truncated", 5, 5.0)
        assert last.result == record


@on_loop
async def test_a_task_that_is_over_is_termination() -> None:
    async with inline(faults={"terminate_at": 3, "truncate_at": 3}) as world, joined(world) as (robot, episode):
        last = (await play(robot, 20))[-1]
        assert (last.terminated, last.index) == (True, 3)
        assert (await world.result(episode.token))["end"] == "terminated"


@on_loop
async def test_the_last_observation_survives_the_next_reset_of_the_same_buffer() -> None:
    async with inline(max_ticks=3) as world, joined(world, seed=1) as (robot, episode):
        last = (await play(robot, 5))[-1]
        before = {name: array.tobytes() for name, array in last.data.items()}
        await world.result(episode.token)
        second = await world.reset(seed=2)
        await robot.claim(second.token)
        first = await robot.get_observation()
        assert {name: array.tobytes() for name, array in last.data.items()} == before
        assert Card.read(last.data["observation/camera0"])[:3] == (0, 3, 1)
        assert Card.read(first.data["observation/camera0"])[:3] == (0, 0, 2)
        assert first.reward == 0.0
        assert (await world.result(second.token))["ticks"] == 0, "the first observation is no step"


@on_loop
async def test_a_killed_link_aborts_the_episode_as_nobodys_score() -> None:
    async with inline() as world:
        host, port = world.capability().url.split("/")[2].split(":")
        async with FaultyLink(host, int(port)) as link:
            episode = await world.reset(seed=1)
            robot = await RobotClient.connect(link.through(world.capability().url), token=episode.token)
            await play(robot, 3)
            link.cut()
            with pytest.raises(LinkLost):
                await robot.get_observation()
            record = await ended(world, episode.token)
            assert (record["end"], record["is_error"], record["score"]) == ("aborted(policy_lost)", True, None)
            assert record["ticks"] == 3
            await robot.close()


async def ended(world: Any, token: str) -> dict[str, Any]:
    """The record of an episode that ends by itself about now."""
    await asyncio.sleep(0.3)
    record: dict[str, Any] = await world.result(token)
    return record


@on_loop
async def test_an_agent_that_closes_midway_has_had_enough_and_is_graded_as_it_stands() -> None:
    async with inline() as world:
        async with joined(world) as (robot, episode):
            await play(robot, 2)
        record = await ended(world, episode.token)
        assert (record["end"], record["is_error"], record["ticks"]) == ("max_steps", False, 2)


@on_loop
@pytest.mark.parametrize(
    ("faults", "error", "end", "is_error"),
    [
        ({"raise_at": 2}, SimFailed, "aborted(sim_failed)", True),
        ({"diverge_at": 2}, SimDiverged, "aborted(sim_diverged)", False),
        ({"nan_at": 2}, SimDiverged, "aborted(sim_diverged)", False),
        ({"nan_reward_at": 2}, SimDiverged, "aborted(sim_diverged)", False),
    ],
)
async def test_what_the_world_does_wrong_is_typed(
    faults: dict[str, Any], error: type[Exception], end: str, is_error: bool
) -> None:
    async with inline(faults=faults) as world, joined(world) as (robot, episode):
        with pytest.raises(error):
            await play(robot, 5)
        record = await world.result(episode.token)
        assert (record["end"], record["is_error"], record["ticks"]) == (end, is_error, 1)
        assert record["total_reward"] == 1.0, "one bad reward does not make the sum NaN"
        assert record["score"] == (None if is_error else 0.0)


@on_loop
@pytest.mark.parametrize(("rule", "success"), [("any", True), ("last", False)])
async def test_a_flickering_success_counts_by_the_rule_and_both_are_recorded(rule: str, success: bool) -> None:
    async with (
        inline(faults={"success_at": [2, 4]}, max_ticks=6, rule=rule) as world,
        joined(world) as (robot, episode),
    ):
        seen = await play(robot, 10)
        assert [heard.success for heard in seen[1:]] == [False, True, False, True, False, False]
        record = await world.result(episode.token)
        assert (record["success_any"], record["success_last"]) == (True, False)
        assert (record["success"], record["score"]) == (success, float(success))


@on_loop
async def test_success_at_the_last_tick_is_not_lost() -> None:
    async with inline(faults={"success_at": [4]}, max_ticks=4, rule="last") as world, joined(world) as (robot, episode):
        assert (await play(robot, 10))[-1].success
        assert (await world.result(episode.token))["success"] is True


@on_loop
async def test_a_slow_first_action_is_served_and_a_slow_later_one_is_the_policys_deadline() -> None:
    async with inline(timing=FAST) as world, joined(world) as (robot, episode):
        first = await robot.get_observation()
        await asyncio.sleep(0.45)  # 1.5 times the deadline, within the warm-up
        second = (await play(robot, 1, first=first))[-1]
        assert second.index == 1
        with pytest.raises(PolicyDeadline, match=r"observation 1 within policy_deadline_s = 0\.3"):
            await robot.get_observation()
        with pytest.raises(LinkLost) as lost:
            await robot.get_observation()
        assert lost.value.data["close_code"] == 4408
        record = await world.result(episode.token)
        assert (record["end"], record["is_error"], record["score"]) == ("aborted(policy_deadline)", False, 0.0)


@on_loop
async def test_a_first_action_beyond_the_warm_up_is_the_policys_deadline() -> None:
    async with inline(timing={"warmup_s": 0.2}) as world, joined(world) as (robot, _):
        await robot.get_observation()
        with pytest.raises(PolicyDeadline, match=r"observation 0 within warmup_s = 0\.2"):
            await robot.get_observation()


@on_loop
async def test_a_long_silence_on_either_side_is_only_slow() -> None:
    async with inline(step_s=0.7) as world:
        host, port = world.capability().url.split("/")[2].split(":")
        async with FaultyLink(host, int(port)) as link:
            episode = await world.reset()
            robot = await RobotClient.connect(link.through(world.capability().url), token=episode.token)
            first = await robot.get_observation()
            await asyncio.sleep(1.0)  # the agent thinks
            link.delay_s = 0.2
            link.down.stall()
            asyncio.get_running_loop().call_later(1.0, link.resume)
            assert (await play(robot, 1, first=first))[-1].index == 1
            link.delay_s = 0.0
            link.stall()
            asyncio.get_running_loop().call_later(0.5, link.resume)
            await robot.send_action(zeros(robot))
            assert (await robot.get_observation()).index == 2
            await robot.close()


@on_loop
async def test_a_server_that_stops_says_so_to_whoever_waits() -> None:
    world = inline(step_s=0.0)
    await world.start()
    async with joined(world) as (robot, _):
        await robot.get_observation()
        waiting = asyncio.create_task(robot.get_observation())
        await asyncio.sleep(0.05)
        async with asyncio.timeout(3.0):
            await world.stop()
        with pytest.raises(ShuttingDown):
            await waiting


@on_loop
async def test_a_bridge_that_hangs_ends_typed_while_the_server_goes_on() -> None:
    async with inline(watchdog_s=0.3, faults={"hang_at": 2, "hang_s": 3.0}) as world, joined(world) as (robot, episode):
        async with asyncio.timeout(2.5):
            with pytest.raises(SimHung, match=r"0\.3 s"):
                await play(robot, 5)
            record = await world.result(episode.token)
        assert (record["end"], record["is_error"]) == ("aborted(sim_hung)", True)
        with pytest.raises(SimHung):
            await world.reset()


@pytest.mark.parametrize(
    "end",
    [End("terminated"), End("truncated"), End("max_steps"), End("aborted", "sim_hung"), End("aborted", "policy_lost")],
)
def test_ends_print_and_parse(end: End) -> None:
    assert End.parse(str(end)) == end


def test_an_end_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="won"):
        End.parse("won")


@on_loop
async def test_rewards_of_an_episode_are_its_own() -> None:
    async with inline(max_ticks=2) as world:
        for seed in range(3):
            async with joined(world, seed=seed) as (robot, episode):
                await play(robot, 5, lambda _: np.zeros(2, np.float32))
                assert (await world.result(episode.token))["total_reward"] == 2.0


@on_loop
async def test_a_first_observation_that_is_not_finite_is_the_worlds_own_fault() -> None:
    async with inline(faults={"nan_at": 0}) as world:
        with pytest.raises(SimFailed, match="first observation") as raised:
            await world.reset(seed=1)
        assert not isinstance(raised.value, SimDiverged)
