"""Episodes played action by action: what is executed, what is told, how they end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.errors import ContractError, EpisodeOver, NoFreeSlot, SlotTaken, UnknownName, UsageError, WireError
from hudsim.robot.client import RobotClient
from hudsim.robot.ending import MAX_STEPS
from hudsim.robot.endpoint import RobotEndpoint
from tests.asyncrun import on_loop
from tests.robot.playing import first_of, joined, metric, play, zeros
from tests.robot.worlds import Card, Cards, HudPair, SlowReset, inline

CARD = Card.read


def resident_mb() -> float:
    """Memory of this process, which is the server's too."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@on_loop
async def test_each_action_is_one_tick_and_nothing_is_lost() -> None:
    async with inline() as world, joined(world, seed=5) as (robot, episode):
        seen = await play(robot, 20, lambda heard: np.full(2, heard.index, np.float32))
        assert [heard.index for heard in seen] == list(range(21))
        for heard in seen:
            card = CARD(heard.data["observation/camera0"])
            assert (card.tick, card.seed) == (heard.index, 5)
            assert heard.data["observation/state"][3] == max(0, heard.index - 1)
        assert seen[0].meta["prompt"] == "read the card"
        assert "prompt" not in seen[1].meta
        assert seen[0].meta["episode"] == episode.token
        assert robot.skipped == 0


@on_loop
async def test_two_connections_never_share_a_slot() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        first = await robot.get_observation()
        with pytest.raises(SlotTaken):
            await first_of(world, episode.token)
        assert len(await play(robot, 3, first=first)) == 4, "the first one plays on"


@on_loop
async def test_the_same_connection_claims_again_after_an_end() -> None:
    async with inline(max_ticks=3) as world, joined(world, seed=1) as (robot, episode):
        assert (await play(robot, 10))[-1].truncated
        await world.result(episode.token)
        second = await world.reset(seed=2)
        await robot.claim(second.token)
        seen = await play(robot, 10)
        assert [heard.index for heard in seen] == [0, 1, 2, 3]
        assert CARD(seen[0].data["observation/camera0"]).seed == 2
        assert (await world.result(second.token))["end"] == "truncated"


@on_loop
async def test_an_action_for_an_episode_that_is_over_is_dropped_and_counted() -> None:
    async with inline(max_ticks=3) as world, joined(world, seed=1) as (robot, episode):
        await play(robot, 3)
        for _ in range(2):
            await robot.send_action(zeros(robot))
        await world.result(episode.token)
        second = await world.reset(seed=2)
        await robot.claim(second.token)
        first = await robot.get_observation()
        robot.episode = episode.token  # an action that was on its way when the episode changed
        await robot.send_action(np.full(2, 9, np.float32))
        robot.episode = second.token
        await robot.send_action(np.full(2, 4, np.float32))
        after = await robot.get_observation()
        assert (first.index, after.index) == (0, 1)
        assert after.data["observation/state"][3:].tolist() == [4.0, 4.0]
        assert await metric(world, "hudsim_late_frames_total") == 3


@on_loop
async def test_a_second_action_while_one_waits_for_its_tick_is_refused() -> None:
    async with inline(mode="paced", rate_hz=2.0) as world, joined(world) as (robot, _):
        first = await robot.get_observation()
        for _ in range(3):
            await robot.send_action(zeros(robot))
        with pytest.raises(WireError, match="expected one for each"):
            await play(robot, 4, first=first)


@on_loop
async def test_an_action_for_an_older_observation_is_refused() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        await play(robot, 3)
        await robot.send_action(zeros(robot), obs_index=1)
        with pytest.raises(WireError, match="observation 1, expected one for the newest, 3"):
            await robot.get_observation()
        assert (await world.result(episode.token))["end"] == "aborted(protocol_error)"


@on_loop
async def test_a_chunk_where_one_action_belongs_is_refused() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        await robot.get_observation()
        await robot.send_chunk(zeros(robot, 4))
        with pytest.raises(ContractError, match="chunk of 4"):
            await robot.get_observation()
        assert (await world.result(episode.token))["end"] == "aborted(contract_violation)"


@on_loop
async def test_a_claim_without_a_token_gets_the_only_episode_there_is() -> None:
    async with inline(Cards, num_envs=2) as world:
        one = await world.reset(seed=1)
        async with await RobotClient.connect(world.capability()) as robot:
            assert (await robot.get_observation()).meta["episode"] == one.token
        await world.reset(seed=2)
        async with await RobotClient.connect(world.capability()) as robot:
            assert CARD((await robot.get_observation()).data["observation/camera0"]).seed == 2


@on_loop
async def test_a_claim_without_a_token_is_refused_where_it_is_ambiguous_or_nothing_waits() -> None:
    async with inline(Cards, num_envs=2) as world:
        with pytest.raises(EpisodeOver, match="no token"):
            await first_of(world)
        await world.reset()
        await world.reset()
        with pytest.raises(EpisodeOver, match="2 episodes wait"):
            await first_of(world)


@on_loop
async def test_a_claim_without_a_token_never_takes_a_slot_that_is_played() -> None:
    async with inline() as world, joined(world) as (robot, _):
        first = await robot.get_observation()
        with pytest.raises(SlotTaken):
            await first_of(world)
        assert len(await play(robot, 3, first=first)) == 4
        await robot.end("max_steps")
        await robot.get_observation()
        with pytest.raises(EpisodeOver, match="max_steps"):
            await first_of(world)


@on_loop
async def test_a_token_that_is_unknown_or_over_is_refused() -> None:
    async with inline(max_ticks=1) as world, joined(world) as (robot, episode):
        await play(robot, 1)
        for token in ("nonsense", episode.token):
            with pytest.raises(EpisodeOver):
                await first_of(world, token)


@on_loop
async def test_alone_a_server_starts_the_next_episode_at_the_next_claim() -> None:
    async with inline(autostart=True, seed=7, max_ticks=2) as world:
        async with await RobotClient.connect(world.capability()) as robot:
            for seed in (7, 8):
                seen = await play(robot, 5)
                assert CARD(seen[0].data["observation/camera0"]).seed == seed
                assert seen[-1].truncated
                assert seen[-1].result is not None
                await robot.claim()
            await robot.get_observation()
        async with await RobotClient.connect(world.capability()) as robot:
            assert CARD((await robot.get_observation()).data["observation/camera0"]).seed == 10


@on_loop
async def test_alone_a_server_takes_a_new_agent_as_soon_as_the_last_has_hung_up() -> None:
    async with inline(autostart=True, step_s=0.05) as world:
        for _ in range(5):
            async with await RobotClient.connect(world.capability()) as robot:
                await robot.get_observation()
                await robot.send_action(zeros(robot))


@on_loop
async def test_alone_a_server_refuses_a_claim_while_every_slot_is_played() -> None:
    async with inline(autostart=True) as world, await RobotClient.connect(world.capability()) as robot:
        first = await robot.get_observation()
        with pytest.raises(NoFreeSlot, match="the only slot is taken: 1 being played"):
            await first_of(world)
        assert len(await play(robot, 2, first=first)) == 3


@on_loop
async def test_a_world_has_as_many_episodes_as_slots() -> None:
    async with inline() as world:
        episode = await world.reset()
        with pytest.raises(NoFreeSlot):
            await world.reset()
        await world.result(episode.token)
        await world.reset()


@on_loop
async def test_an_argument_that_the_task_does_not_take_names_the_nearest() -> None:
    async with inline() as world:
        with pytest.raises(UnknownName, match="did you mean 'prompt'"):
            await world.reset(seed=0, promt="x")
        assert (await world.reset(seed=0, prompt="sort them")).prompt == "sort them"


@on_loop
async def test_a_reset_that_fails_leaves_its_slot_free() -> None:
    async with inline() as world:
        for _ in range(3):
            with pytest.raises(UnknownName):
                await world.reset(nope=1)
        await world.reset()


@on_loop
async def test_an_episode_reads_as_a_mapping() -> None:
    async with inline() as world:
        episode = await world.reset(seed=3)
        assert dict(episode) == {"prompt": "read the card", "token": episode.token, "seed": 3, "slot": 0}


@on_loop
async def test_a_bridge_that_shows_the_bare_pair_is_served_with_its_scores() -> None:
    async with inline(HudPair) as world, joined(world, seed=4) as (robot, episode):
        assert robot.contract.features["observation/state"].shape == (2,)
        seen = await play(robot, 10, lambda _: np.array([1, 2], np.float32))
        assert [heard.reward for heard in seen] == [0.0, 0.5, 0.5, 0.5]
        assert seen[-1].data["observation/state"].tolist() == [7.0, 10.0]
        assert seen[-1].terminated
        record = await world.result(episode.token)
        assert (record["end"], record["success"], record["total_reward"]) == ("terminated", True, 1.5)
        second = await world.reset(seed=0)
        await robot.claim(second.token)
        assert not (await robot.get_observation()).over


@on_loop
async def test_result_without_a_token_is_the_only_episodes() -> None:
    async with inline() as world:
        await world.reset(seed=1)
        record = await world.result()
        assert (record["end"], record["is_error"], record["seed"]) == ("max_steps", False, 1)


@on_loop
async def test_grading_a_running_episode_ends_it_as_it_stands_and_tells_its_agent() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        await robot.get_observation()
        waiting = asyncio.create_task(robot.get_observation())
        await asyncio.sleep(0)
        record = await world.result(episode.token)
        heard = await waiting
        assert heard.result is not None
        assert heard.result["end"] == record["end"] == "max_steps"
        assert not record["is_error"]


@on_loop
async def test_an_end_that_comes_late_does_not_end_the_slots_next_episode() -> None:
    async with inline() as world:
        first = await world.reset(seed=1)
        server: Any = world._world._server  # type: ignore[attr-defined]
        slot, patiently, later = server._slots[0], server._patiently, asyncio.Event()

        async def late(job: Any) -> Any:
            done = await patiently(job)
            await later.wait()
            return done

        server._patiently = late
        ending = asyncio.create_task(server.end(slot, MAX_STEPS))
        await asyncio.sleep(0)
        server._patiently = patiently
        await world.result(first.token)
        second = await world.reset(seed=2)
        later.set()
        await ending
        assert slot.live
        assert slot.token == second.token


@on_loop
async def test_an_agent_that_has_had_enough_steps_says_so() -> None:
    async with inline() as world, joined(world) as (robot, episode):
        await play(robot, 4)
        await robot.end("max_steps")
        heard = await robot.get_observation()
        assert heard.over
        assert heard.data == {}
        record = await world.result(episode.token)
        assert (record["end"], record["ticks"], record["is_error"]) == ("max_steps", 4, False)


@on_loop
async def test_an_agent_may_not_invent_ends() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await robot.get_observation()
        await robot.end("success")
        with pytest.raises(WireError, match="expected one of"):
            await robot.get_observation()


@on_loop
async def test_an_action_for_an_episode_that_never_was_is_refused() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await robot.get_observation()
        robot.episode = "9-ffffffffffffffff"
        await robot.send_action(zeros(robot))
        with pytest.raises(WireError, match="expected one that was claimed on this connection"):
            await robot.get_observation()


@on_loop
async def test_episodes_that_claims_start_never_bar_an_environment() -> None:
    async with inline(autostart=True, max_ticks=2) as world:
        for _ in range(2):
            async with await RobotClient.connect(world.capability()) as robot:
                assert (await play(robot, 5))[-1].over
        episode = await world.reset(seed=4)
        assert (await world.result(episode.token))["seed"] == 4


@on_loop
async def test_what_an_environment_started_is_freed_when_it_is_gone() -> None:
    async with inline(autostart=True) as world:
        url = world.address.url
        async with RobotEndpoint.remote(url) as gone:
            await gone.reset(seed=1)
            with pytest.raises(NoFreeSlot, match="1 being played"):
                await gone.reset(seed=2)
        async with RobotEndpoint.remote(url) as other, asyncio.timeout(5.0):
            episode = None
            while episode is None:
                with contextlib.suppress(NoFreeSlot):  # the end of the other link is being noticed
                    episode = await other.reset(seed=3)
            assert episode.seed == 3


@on_loop
@pytest.mark.parametrize("seed", ["x", -1, 1.5, True])
async def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    async with inline() as world:
        with pytest.raises(UsageError, match="expected a whole number from 0"):
            await world.reset(seed=seed)


@on_loop
async def test_claims_during_a_reset_get_episodes_of_their_own() -> None:
    async with inline(SlowReset, reset_s=0.3, autostart=True, num_envs=2) as world:
        url = world.capability().url
        one, other = await asyncio.gather(RobotClient.connect(url), RobotClient.connect(url))
        async with one, other:
            seen = [await robot.get_observation() for robot in (one, other)]
            assert len({heard.meta["episode"] for heard in seen}) == 2
            async with await RobotClient.connect(url) as third:
                with pytest.raises(NoFreeSlot):
                    await third.get_observation()
            assert [
                len(await play(robot, 2, first=first)) for robot, first in zip((one, other), seen, strict=True)
            ] == [3, 3]


@on_loop
async def test_an_episode_that_nobody_claims_gives_up() -> None:
    async with inline(timing={"warmup_s": 0.3}) as world:
        episode = await world.reset(seed=1)
        await asyncio.sleep(0.6)
        with pytest.raises(EpisodeOver, match="policy_deadline"):
            await first_of(world, episode.token)
        record = await world.result(episode.token)
        assert (record["end"], record["message"][:16]) == ("aborted(policy_deadline)", "nobody claimed t")


@on_loop
async def test_who_acts_on_without_reading_is_sent_away_and_costs_no_memory() -> None:
    async with inline(width=480, height=480) as world, joined(world) as (robot, episode):
        robot._link._stream.transport.pause_reading()
        before = resident_mb()
        for _ in range(400):  # 280 MB of answers, were they all kept
            try:
                await robot.send_action(zeros(robot), obs_index=None)
            except Exception:  # sent away already
                break
            await asyncio.sleep(0.002)
        record = await world.result(episode.token)
        assert record["end"] == "aborted(protocol_error)"
        assert "unread" in record["message"]
        assert resident_mb() - before < 100


@on_loop
async def test_an_observation_that_was_not_made_cannot_be_acknowledged() -> None:
    async with inline() as world, joined(world) as (robot, _):
        await robot.get_observation()
        await robot._send(robot._session.ack(2**61))
        with pytest.raises(WireError, match="newest observation is 0"):
            await robot.get_observation()
