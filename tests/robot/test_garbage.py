"""Whatever a bridge gives, its agents are told and its slots stay usable."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import TestCardBridge
from hudsim.errors import EpisodeError, SimFailed
from hudsim.robot.bridge import Array, Observation, RobotBridge
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play


class Garbage(TestCardBridge):
    """Shows or says ``what`` from its second tick on."""

    def __init__(self, what: str = "") -> None:
        super().__init__(width=16, height=16, cameras=1, state=5)
        self._what = what
        self._ticks = 0

    def reset(self, seed: int | None = None, prompt: str = "") -> str:
        self._ticks = 0
        super().reset(seed, prompt)
        return "\ud800" if self._what == "prompt" else "go"

    def step(self, action: Array) -> None:
        self._ticks += 1
        action *= 0.5  # its own copy: nobody else's is changed
        super().step(action)

    def get_observation(self) -> Any:
        seen = super().get_observation()
        if self._ticks < 2:
            return seen
        return {
            "no data": Observation(None),  # type: ignore[arg-type]
            "ragged": Observation({"observation/state": [[1.0], [1.0, 2.0]]}),
            "empty flags": Observation(seen.data, terminated=np.array([])),
            "words": Observation(seen.data, reward=["a lot"]),  # type: ignore[arg-type]
            "nothing": None,
        }.get(self._what, seen)

    def result(self) -> Any:
        return {
            "result none": None,
            "result float32": {"score": np.float32(0.5), "grid": np.arange(3), "odd": {1: object()}},
            "result nan": {"score": float("nan")},
        }.get(self._what, {})


class AsyncStep(Garbage):
    async def step(self, action: Array) -> None:  # type: ignore[override]
        """Never runs."""


class YieldingReset(Garbage):
    def reset(self, seed: int | None = None, prompt: str = "") -> Any:
        yield "go"


def served(kind: type[RobotBridge] = Garbage, *, apart: bool = True, **args: Any) -> RobotEndpoint:
    spec = WorldSpec(f"{Path(__file__).resolve()}:{kind.__name__}", args)
    return RobotEndpoint.spawn(spec) if apart else RobotEndpoint.inline(spec)


@on_loop
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("what", ["no data", "ragged", "empty flags", "words", "nothing"])
async def test_an_observation_that_cannot_be_read_is_the_worlds_failure(what: str, apart: bool) -> None:
    async with served(what=what, apart=apart) as world, joined(world) as (robot, episode):
        async with asyncio.timeout(5.0):
            with pytest.raises(SimFailed):
                await play(robot, 5)
        record = await world.result(episode.token)
        assert (record["end"], record["score"], record["ticks"]) == ("aborted(sim_failed)", None, 1)


@on_loop
async def test_a_prompt_that_cannot_be_sent_is_the_worlds_failure() -> None:
    async with served(what="prompt") as world, joined(world) as (robot, episode), asyncio.timeout(5.0):
        with pytest.raises(SimFailed, match="cannot be sent"):
            await robot.get_observation()
        assert (await world.result(episode.token))["is_error"]


@on_loop
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    ("what", "score", "info"),
    [
        ("result none", None, {"grading_error": "result: got NoneType, expected a dict"}),
        ("result float32", 0.5, {"grid": [0, 1, 2]}),
        ("result nan", None, {}),
    ],
)
async def test_a_score_of_any_kind_reaches_the_record(what: str, score: Any, info: dict[str, Any], apart: bool) -> None:
    async with served(what=what, apart=apart) as world, asyncio.timeout(10.0):
        for _ in range(2):  # the slot is free again
            async with joined(world) as (robot, episode):
                await play(robot, 2)
                await robot.end("max_steps")
                last = await robot.get_observation()
                record = await world.result(episode.token)
                assert last.result is not None
                assert record["score"] == last.result["score"] == score
                assert info.items() <= record["info"].items()


@on_loop
async def test_hooks_that_would_not_run_are_refused() -> None:
    async with served(AsyncStep) as world, joined(world) as (robot, _), asyncio.timeout(5.0):
        with pytest.raises(SimFailed, match="got a coroutine from the bridge"):
            await play(robot, 1)
    async with served(YieldingReset) as world, asyncio.timeout(5.0):
        with pytest.raises(SimFailed, match="got a generator from the bridge"):
            await world.reset(seed=1)


@on_loop
async def test_a_bridge_that_changes_its_action_changes_nobody_elses() -> None:
    async with served(apart=False) as world, joined(world) as (robot, _):
        robot.episode = None  # a client that does not say which episode it means
        action = np.ones(robot.contract.action.shape or (), np.float32)
        seen = await play(robot, 3, lambda _: action)
        assert len(seen) == 4
        assert (action == 1.0).all()


@on_loop
async def test_after_stop_a_world_is_not_started_by_a_reset() -> None:
    world = served()
    with pytest.raises(EpisodeError, match=r"start\(\) it first"):
        await world.reset(seed=1)
    async with world:
        await world.reset(seed=1)
    with pytest.raises(EpisodeError, match=r"start\(\) it first"):
        await world.reset(seed=1)
    with pytest.raises(EpisodeError, match="before start"):
        world.capability()
