"""Robots in an environment: whose episode is whose, and what becomes of it when its session goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
import pytest

from hudsim.bridge import Episode
from hudsim.capability import Capability
from hudsim.environment import ControlClient, Environment
from hudsim.errors import ContractError, EpisodeOver, NoFreeSlot, UsageError
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from tests.asyncrun import on_loop
from tests.environment.served import serving
from tests.robot.playing import play
from tests.robot.worlds import Card, Cards, inline, spec


def cards(slots: int = 1, **options: Any) -> Environment:
    """``read``: one episode of a test card of two ticks, graded by what it says itself."""
    env = Environment("cards")
    kind = Cards if slots > 1 else Card
    card = env.robot(inline(kind, num_envs=slots, max_ticks=2, **options), name="card")

    @env.template()
    async def read(seed: int = 0) -> AsyncGenerator[Any, Any]:
        episode = await card.reset(seed=seed)
        yield episode["prompt"]
        record = await card.result()
        yield float(record["ticks"])

    return env


async def played(control: ControlClient, *, direct: bool | None = None, seed: int = 0) -> float:
    """Start a task, play its episode to the end, and have it graded."""
    started = await control.start("read", {"seed": seed})
    card = await control.reach(control.capabilities["card"], direct=direct)
    async with await RobotClient.connect(card, token=started["bindings"]["card"]["token"]) as robot:
        await play(robot, 10)
    return float((await control.grade())["score"])


@pytest.mark.parametrize("direct", [True, False])
@on_loop
async def test_an_agent_plays_the_episode_of_its_session(direct: bool) -> None:
    async with serving(cards()) as server, await ControlClient.connect(server.address) as control:
        assert await played(control, direct=direct) == 2.0
        assert await played(control, direct=direct) == 2.0


@on_loop
async def test_a_robot_that_is_not_direct_is_reached_through_the_environments_port() -> None:
    async with serving(cards()) as server, await ControlClient.connect(server.address) as control:
        card = control.capabilities["card"]
        assert (await control.reach(card)).url == card.url
        assert (await control.reach(card, direct=False)).url.startswith(f"ws://{server.address.netloc}/robot/card")


@on_loop
async def test_many_sessions_play_at_once_each_in_its_slot() -> None:
    async with serving(cards(slots=4)) as server:
        assert server.environment.slots == 4
        controls = [await ControlClient.connect(server.address) for _ in range(4)]
        scores = await asyncio.gather(*(played(control, seed=n) for n, control in enumerate(controls)))
        assert scores == [2.0] * 4
        for control in controls:
            await control.close()


@on_loop
async def test_a_session_waits_while_others_hold_every_slot() -> None:
    async with serving(cards()) as server, await ControlClient.connect(server.address) as first:
        await first.start("read")
        async with await ControlClient.connect(server.address) as second:
            starting = asyncio.create_task(second.start("read"))
            await asyncio.sleep(0.1)
            assert not starting.done()
            await first.grade()
            await starting
            await second.grade()


@pytest.mark.parametrize("way", ["bye", "cancel", "expiry", "start"])
@on_loop
async def test_a_session_that_goes_without_a_grade_gives_its_slot_back(way: str) -> None:
    async with serving(cards()) as server:
        first = await ControlClient.connect(server.address, park_s=0.05)
        await first.start("read")
        if way == "bye":
            await first.close()
        elif way == "expiry":
            await first.drop()
        elif way == "cancel":
            await first.cancel()
        else:
            await first.start("read")
            await first.close()
        async with await ControlClient.connect(server.address) as second:
            await second.start("read")
            await second.grade()
        await first.close()


@on_loop
async def test_a_session_that_holds_every_slot_is_not_left_waiting_for_itself() -> None:
    env = Environment("greedy")
    card = env.robot(inline(), name="card")

    @env.template()
    async def two() -> AsyncGenerator[Any, Any]:
        await card.reset()
        await card.reset()
        yield "never"

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        with pytest.raises(NoFreeSlot, match="this session holds all 1 slots"):
            await control.start("two")


@on_loop
async def test_a_result_is_only_for_the_session_that_started_the_episode() -> None:
    env = Environment("thief")
    card = env.robot(inline(Cards, num_envs=2), name="card")
    episodes: list[Episode] = []

    @env.template()
    async def honest() -> AsyncGenerator[Any, Any]:
        episodes.append(await card.reset())
        yield "go"
        yield float((await card.result())["ticks"])

    @env.template()
    async def thief() -> AsyncGenerator[Any, Any]:
        yield "go"
        yield float((await card.result(episodes[0].token))["ticks"])

    async with (
        serving(env) as server,
        await ControlClient.connect(server.address) as one,
        await ControlClient.connect(server.address) as two,
    ):
        await one.start("honest")
        await two.start("thief")
        with pytest.raises(EpisodeOver, match="this session has 0"):
            await two.grade()
        assert (await one.grade())["score"] == 0.0


@on_loop
async def test_a_robot_may_be_made_of_the_settings() -> None:
    env = Environment("sized", settings={"width": 32})
    card = env.robot(lambda settings: RobotEndpoint.inline(spec(Card, width=settings["width"])), name="card")

    @env.template()
    async def look() -> AsyncGenerator[Any, Any]:
        await card.reset()
        yield "look"
        yield 1.0

    env.configure(width=48)
    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        contract = control.capabilities["card"].params["contract"]
        assert any(
            feature["shape"][:2] == [32, 48] for feature in contract["features"].values() if feature.get("shape")
        )


@on_loop
async def test_a_gymnasium_environment_is_served_by_its_id() -> None:
    env = Environment("poles")
    pole = env.gym("InvertedPendulum-v5", name="pole")

    @env.template()
    async def balance(seed: int = 0) -> AsyncGenerator[Any, Any]:
        episode = await pole.reset(seed=seed)
        yield episode["prompt"]
        record = await pole.result()
        yield min(1.0, record["total_reward"] / 10)

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        started = await control.start("balance")
        async with await RobotClient.connect(
            control.capabilities["pole"], token=started["bindings"]["pole"]["token"]
        ) as robot:
            await play(robot, 3)
        assert 0 < (await control.grade())["score"] <= 1


def test_a_capability_has_one_name_and_a_place() -> None:
    env = Environment("names", capabilities=[Capability.mcp(url="http://127.0.0.1:8000")])
    with pytest.raises(UsageError, match="has a capability 'mcp' already"):
        env.robot(inline(), name="mcp")
    with pytest.raises(UsageError, match=r"expected scheme://host:port"):
        env.add_capability(Capability("odd", "odd/1", "nowhere"))
    with pytest.raises(UsageError, match="expected a RobotBridge"):
        env.robot(dict)  # type: ignore[arg-type]


@on_loop
async def test_an_episode_that_the_policy_broke_off_is_worth_no_more_than_nothing() -> None:
    env = Environment("generous")
    card = env.robot(inline(max_ticks=5), name="card")

    @env.template()
    async def give() -> AsyncGenerator[Any, Any]:
        await card.reset()
        yield "take"
        await card.result()
        yield 1.0

    async with serving(env) as server, await ControlClient.connect(server.address) as control:
        started = await control.start("give")
        token = started["bindings"]["card"]["token"]
        async with await RobotClient.connect(control.capabilities["card"], token=token) as robot:
            await robot.get_observation()
            await robot.send_action(np.full(robot.contract.action.shape or (), np.nan, np.float32))
            with pytest.raises(ContractError):
                await robot.get_observation()
        frame = await control.grade()
        assert (frame["score"], frame["verdict"]) == (0.0, "failed")
        assert frame["info"]["forfeited"] == 1.0
        assert "aborted(contract_violation)" in frame["content"]


@on_loop
async def test_a_world_that_is_none_but_an_environment_says_so() -> None:
    async with serving(cards()) as server:
        with pytest.raises(UsageError, match="serves an environment, not a world alone"):
            await RobotEndpoint.remote(server.address.url).start()
