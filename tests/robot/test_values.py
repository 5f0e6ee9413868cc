"""Numbers reach the world exactly as they were sent, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import websockets

from hudsim.errors import ContractError
from hudsim.wire.codec import decode, encode
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play
from tests.robot.worlds import Discrete, inline

INT64 = {"dtype": "int64", "shape": [2], "limits": {"min": [3, 0], "max": [2**40, 7]}}
ONE = {"dtype": "int64", "shape": [], "limits": {"min": 3, "max": 9}}
BITS = {"dtype": "bool", "shape": [3]}


@on_loop
@pytest.mark.parametrize(
    ("feature", "action"),
    [
        (INT64, np.array([2**24 + 1, 7])),
        (INT64, np.array([2**40, 0])),
        (ONE, np.array(5)),
        (ONE, np.int64(9)),
        (ONE, 4),
        (BITS, np.array([True, False, True])),
    ],
)
async def test_whole_numbers_arrive_exactly(feature: dict[str, Any], action: Any) -> None:
    async with inline(Discrete, feature=feature) as world, joined(world) as (robot, _):
        seen = await play(robot, 1, lambda _: action)
        np.testing.assert_array_equal(seen[-1].data["observation/got"], action)


@on_loop
@pytest.mark.parametrize(
    ("feature", "action", "word"),
    [
        (ONE, np.array(0.9999), r"float64\[\], expected int64"),
        (ONE, np.array([5]), r"int64\[1\]"),
        (ONE, np.array(2), "2"),
        (ONE, np.array(10), "10"),
        (INT64, np.array([2**40 + 1, 0]), str(2**40 + 1)),
        (BITS, np.array([0, 2, 1]), r"int64\[3\], expected bool"),
    ],
)
async def test_what_is_no_such_number_is_refused_by_name(feature: dict[str, Any], action: Any, word: str) -> None:
    async with inline(Discrete, feature=feature) as world, joined(world) as (robot, episode):
        with pytest.raises(ContractError, match=f"action: got .*{word}"):
            await play(robot, 1, lambda _: action)
        assert (await world.result(episode.token))["ticks"] == 0


@on_loop
@pytest.mark.parametrize(
    ("action", "arrives"),
    [([4.0, 7.0], [4, 7]), ([2.0**24, 0.0], [2**24, 0]), ([4.5, 0.0], None), ([2.0**24 + 2, 0.0], None)],
)
async def test_a_peer_that_has_floats_only_may_send_whole_ones(action: list[float], arrives: list[int] | None) -> None:
    async with (
        inline(Discrete, feature=INT64, autostart=True) as world,
        websockets.connect(world.capability().url) as ws,
    ):
        await ws.recv()
        await ws.send(bytes(encode({"claim": None})))
        await ws.recv()
        await ws.send(bytes(encode({"actions": np.array(action, np.float32)})))
        answer = await asyncio.wait_for(ws.recv(), 10)
        if arrives is None:
            assert isinstance(answer, str)
            assert answer.startswith("contract_violation: action: got")
        else:
            assert isinstance(answer, bytes)
            assert decode(answer)["observation/got"].tolist() == arrives


@on_loop
async def test_a_hudsim_peer_sends_integers_as_integers() -> None:
    async with inline(Discrete, feature=INT64) as world, joined(world) as (robot, _):
        with pytest.raises(ContractError, match="float64"):
            await play(robot, 1, lambda _: np.array([4.0, 7.5]))


@on_loop
async def test_beyond_its_limits_an_action_is_refused_under_reject() -> None:
    async with inline(limit=1.0) as world, joined(world) as (robot, episode):
        with pytest.raises(ContractError, match=r"1\.2.*\[1\] \(a1\).*\[-1\.0, 1\.0\]"):
            await play(robot, 5, lambda heard: np.array([0.5, 1.2 if heard.index == 2 else 1.0], np.float32))
        record = await world.result(episode.token)
        assert (record["end"], record["ticks"]) == ("aborted(contract_violation)", 2)
        assert (record["score"], record["is_error"]) == (0.0, False)


@on_loop
async def test_beyond_its_limits_an_action_is_clipped_and_counted_by_the_dimension_under_clip() -> None:
    async with inline(limit=1.0, out_of_range="clip") as world, joined(world) as (robot, episode):
        seen = await play(robot, 4, lambda heard: np.array([-3.0 if heard.index == 0 else 0.0, 1.2], np.float32))
        assert seen[1].data["observation/state"][3:].tolist() == [-1.0, 1.0]
        assert [heard.meta.get("clipped", 0) for heard in seen] == [0, 2, 1, 1, 1]
        await robot.end("max_steps")
        await robot.get_observation()
        assert (await world.result(episode.token))["clipped"] == [1, 4]


@on_loop
async def test_a_limit_is_compared_in_the_actions_own_dtype() -> None:
    async with inline(limit=2.8973) as world, joined(world) as (robot, _):
        limit = np.float32(2.8973)
        assert float(limit) > 2.8973
        assert len(await play(robot, 2, lambda _: np.array([limit, -limit], np.float32))) == 3
