"""A client written for HUD's ``openpi/0``, by hand: plain msgpack, a claim without ``accept``, float32 actions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import numpy as np
import pytest
import websockets

from hudsim.robot.endpoint import RobotEndpoint
from tests.asyncrun import on_loop
from tests.robot.worlds import Card, Cards, inline


def pack(value: Any) -> Any:
    """As openpi's msgpack-numpy packs, in its own words."""
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    return value


def unpack(value: Any) -> Any:
    if b"__ndarray__" in value:
        return np.ndarray(buffer=value[b"data"], dtype=np.dtype(value[b"dtype"]), shape=value[b"shape"])
    return value


class HudClient:
    """What HUD's robot client does on the wire."""

    def __init__(self, ws: websockets.ClientConnection) -> None:
        self.ws = ws

    async def send(self, message: Any) -> None:
        await self.ws.send(msgpack.packb(message, default=pack))

    async def receive(self) -> Any:
        raw = await asyncio.wait_for(self.ws.recv(), 10)
        return raw if isinstance(raw, str) else msgpack.unpackb(raw, object_hook=unpack)

    async def act(self, action: Any, **more: Any) -> None:
        await self.send({"actions": np.asarray(action, np.float32), **more})


@asynccontextmanager
async def hud(world: RobotEndpoint, token: str | None = None, *, claim: bool = True) -> AsyncIterator[HudClient]:
    # HUD's client leaves the library's compression on and has no header for a token: it is in the URL.
    async with websockets.connect(world.capability().url, max_size=None, ping_interval=None, open_timeout=30) as ws:
        client = HudClient(ws)
        greeting = await client.receive()
        assert greeting["claim_required"] is True
        assert greeting["contract"]["features"]["action"]["role"] == "action"
        if claim:
            await client.send({"claim": token})
        yield client


@on_loop
async def test_an_episode_is_played_with_flat_frames_and_no_extra_keys() -> None:
    async with inline(max_ticks=4) as world:
        episode = await world.reset(seed=3)
        async with hud(world, episode.token) as client:
            for tick in range(5):
                seen = await client.receive()
                assert set(seen) == {"observation/camera0", "observation/state", "terminated", "reward"}
                card = Card.read(seen["observation/camera0"])
                assert (card.tick, card.seed) == (tick, 3)
                assert seen["terminated"] is (tick == 4), "a time limit ends the episode in the one word there is"
                if tick < 4:
                    await client.act([tick, -tick])
        assert (await world.result(episode.token))["end"] == "truncated"


@on_loop
async def test_a_claim_of_nil_starts_one_episode_after_the_other_on_a_server_that_stands_alone() -> None:
    async with inline(autostart=True, seed=4, max_ticks=1) as world:
        for seed in (4, 5, 6):
            async with hud(world) as client:
                assert Card.read((await client.receive())["observation/camera0"]).seed == seed
                await client.act([0, 0])
                assert (await client.receive())["terminated"] is True


@on_loop
async def test_an_agent_that_has_reached_its_own_limit_just_closes() -> None:
    async with inline() as world:
        episode = await world.reset()
        async with hud(world, episode.token) as client:
            await client.receive()
            await client.act([0, 0])
            await client.receive()
        await asyncio.sleep(0.2)
        record = await world.result(episode.token)
        assert (record["end"], record["is_error"], record["ticks"]) == ("max_steps", False, 1)


@on_loop
@pytest.mark.parametrize(("action", "word"), [([np.nan, 0], "nan"), ([0, 0, 0], r"float32[3]"), ([5, 0], "5.0")])
async def test_a_refusal_is_a_text_frame(action: Any, word: str) -> None:
    async with inline(limit=1.0, autostart=True) as world, hud(world) as client:
        await client.receive()
        await client.act(action)
        said = await client.receive()
        assert isinstance(said, str)
        assert said.startswith("contract_violation: action: got ")
        assert word in said


@on_loop
async def test_a_wrong_token_is_a_text_frame_too() -> None:
    async with inline() as world, hud(world, "nonsense") as client:
        said = await client.receive()
        assert isinstance(said, str)
        assert "nonsense" in said


@on_loop
async def test_chunks_with_an_index_play_in_realtime() -> None:
    async with inline(mode="realtime", rate_hz=50.0, autostart=True, max_ticks=12) as world, hud(world) as client:
        tick, over = 0, False
        while not over:
            seen = await client.receive()
            assert set(seen) == {"observation/camera0", "observation/state", "terminated", "reward"}
            tick, over = Card.read(seen["observation/camera0"]).tick, seen["terminated"]
            if not over:
                await client.act(np.full((6, 2), tick), obs_index=tick, delay_used=0)
        assert tick == 12


@on_loop
async def test_an_episode_that_is_graded_midway_does_not_leave_the_client_waiting() -> None:
    async with inline() as world:
        episode = await world.reset()
        async with hud(world, episode.token) as client:
            await client.receive()
            await world.result(episode.token)
            said = await client.receive()
            assert isinstance(said, str)
            assert "ended from outside: max_steps" in said


@on_loop
async def test_a_policy_servers_client_that_speaks_first_is_told_that_this_is_a_world() -> None:
    async with inline() as world, hud(world, claim=False) as client:
        await client.send({"observation/image": np.zeros((8, 8, 3), np.uint8), "prompt": "pick up the fork"})
        said = await client.receive()
        assert isinstance(said, str)
        assert "this is a world, not a policy server" in said


@on_loop
async def test_slots_are_claimed_by_token() -> None:
    async with inline(Cards, num_envs=2) as world:
        episodes = [await world.reset(seed=seed) for seed in (1, 2)]
        async with hud(world, episodes[0].token) as one, hud(world, episodes[1].token) as two:
            assert Card.read((await two.receive())["observation/camera0"])[:3] == (1, 0, 2)
            assert Card.read((await one.receive())["observation/camera0"])[:3] == (0, 0, 1)


@on_loop
async def test_every_frame_stands_for_itself() -> None:
    async with inline(autostart=True) as world, hud(world) as client:
        frames = []
        for _ in range(4):
            frames.append(await client.receive())
            await client.act([1, 1])
        assert [Card.read(frame["observation/camera0"]).tick for frame in frames] == [0, 1, 2, 3]
