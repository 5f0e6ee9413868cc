"""Cameras that cross a link as JPEG: what arrives, who gets it, in what order, what the record says of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import read_card
from hudsim.contract import Contract
from hudsim.errors import DecodeError, SimFailed, UnknownName, WireError
from hudsim.net import Address, Link, Server, connect
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.cadence import Cadence
from hudsim.robot.cameras import Cameras
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.hashchain import HashChain
from hudsim.robot.lateframe import LateFrame
from hudsim.robot.model import Model
from hudsim.robot.run import RunOptions, RunReport, run_episodes
from hudsim.wire.codec import decode, encode
from hudsim.wire.jpeg import encode_jpeg
from hudsim.wire.ring import Ring
from tests.asyncrun import on_loop
from tests.robot.coloured import CAMERA, Coloured, coloured, in_rgb, read_encoded
from tests.robot.playing import play, zeros
from tests.robot.worlds import inline, spec

_NEAR = 12
CORNERS = {(0, 0): (255, 0, 0), (0, -1): (0, 255, 0), (-1, 0): (0, 0, 255), (-1, -1): (255, 255, 255)}


class Still(Model):
    """Does nothing, whatever it sees."""

    def infer(self, batch: Any) -> Array:
        return np.zeros((1, 3, 2), np.float32)


def world(*, num_envs: int = 1, **options: Any) -> RobotEndpoint:
    return RobotEndpoint.inline(coloured(**options), num_envs=num_envs)


@asynccontextmanager
async def joined(
    served: RobotEndpoint, *, seed: int = 0, shared_memory: bool = False, **how: Any
) -> AsyncIterator[tuple[RobotClient, str]]:
    """A client that has claimed a new episode, as one on another host would, and the episode's token."""
    episode = await served.reset(seed=seed)
    where = served.capability()
    async with await RobotClient.connect(where, token=episode.token, shared_memory=shared_memory, **how) as robot:
        yield robot, episode.token


@pytest.mark.parametrize("encoding", ["raw", "jpeg:75", "jpeg:95"])
@pytest.mark.parametrize("order", ["rgb", "bgr", "gray"])
@on_loop
async def test_a_card_arrives_upright_and_in_its_colours(order: str, encoding: str) -> None:
    async with world(order=order, encoding=encoding) as served, joined(served) as (robot, _):
        for tick, heard in enumerate(await play(robot, 5)):
            image = heard.data[CAMERA]
            assert image.shape == robot.contract.observations[CAMERA].shape
            assert image.dtype == np.uint8
            for corner, colour in CORNERS.items():
                want = np.dot(colour, (0.299, 0.587, 0.114)) if order == "gray" else colour
                np.testing.assert_allclose(in_rgb(image, order)[corner].astype(int), want, atol=_NEAR)
            if order != "gray":
                assert read_encoded(image, order) == (0, tick)


@on_loop
async def test_a_spawned_world_encodes_too_and_better_quality_is_more_bytes() -> None:
    sizes = []
    for quality in (20, 90):
        async with RobotEndpoint.spawn(coloured(), encode={"camera0": f"jpeg:{quality}"}) as served:
            async with joined(served) as (robot, token):
                assert [read_encoded(heard.data[CAMERA]) for heard in await play(robot, 8)] == [
                    (0, tick) for tick in range(9)
                ]
            record = await served.result(token)
        assert record["encodings"] == {CAMERA: f"jpeg:{quality}"}
        sizes.append(Cadence.from_json(record["cadence"]).summary()["frame_bytes"]["p50"])
    assert sizes[0] < sizes[1] < 128 * 128 * 3


# Who gets what ----------------------------------------------------------------------------------------------------


async def first_frame(served: RobotEndpoint, accept: dict[str, Any] | None) -> Any:
    """What a peer that accepts this is sent first, decoded if it is no text."""
    episode = await served.reset(seed=0)
    link = await connect(Address.parse(served.capability().url))
    await link.receive()
    await link.send(encode({"claim": episode.token, **({} if accept is None else {"accept": accept})}))
    frame = await link.receive()
    await link.close()
    await served.result(episode.token)
    return decode(frame) if isinstance(frame, bytes) else frame


@on_loop
async def test_a_peer_that_does_not_say_that_it_can_decode_gets_arrays() -> None:
    async with world() as served:
        for accept in (
            None,
            {"protocol": "openpi/0", "encodings": ["jpeg"]},
            {"protocol": "hudsim/1"},
            {"protocol": "hudsim/1", "encodings": []},
            {"protocol": "hudsim/1", "encodings": ["png", "av1"]},
        ):
            assert read_encoded((await first_frame(served, accept))[CAMERA]) == (0, 0)
        asked = await first_frame(served, {"protocol": "hudsim/1", "encodings": ["av1", "jpeg"]})
        assert asked[CAMERA].keys() == {"jpeg"}
        assert asked[CAMERA]["jpeg"].startswith(b"\xff\xd8\xff")


@pytest.mark.parametrize("said", ["jpeg", {"jpeg": True}, [1], 7])
@on_loop
async def test_encodings_that_are_no_list_of_words_are_refused(said: Any) -> None:
    async with world() as served:
        assert "accept.encodings: got" in await first_frame(served, {"protocol": "hudsim/1", "encodings": said})


@pytest.mark.parametrize("size", [{"width": 160, "height": 120}, {"width": 32, "height": 32}])
@on_loop
async def test_on_one_host_every_image_is_raw_also_one_too_small_for_shared_memory(size: dict[str, int]) -> None:
    async with world(encoding="jpeg:10", **size) as served:
        async with joined(served, shared_memory=True) as (robot, token):
            seen = await play(robot, 3)
        record = await served.result(token)
    bridge = Coloured(width=size["width"], height=size["height"])
    bridge.reset([0], [0])
    np.testing.assert_array_equal(seen[0].data[CAMERA], bridge.get_observation().data[CAMERA][0])
    assert record["encodings"] == {}


@on_loop
async def test_an_agent_may_want_its_images_raw() -> None:
    async with world() as served, joined(served, encodings=()) as (robot, token):
        await robot.get_observation()
        assert (await served.result(token))["encodings"] == {}


@on_loop
async def test_encodings_are_asked_for_as_a_world_is_served() -> None:
    async with inline(cameras=2) as served, joined(served) as (robot, token):
        await robot.get_observation()
        assert (await served.result(token))["encodings"] == {}
    served = RobotEndpoint.inline(spec(cameras=2), encode={"camera1": "jpeg:60"})
    async with served, joined(served) as (robot, token):
        seen = (await robot.get_observation()).data
        assert read_encoded(seen["observation/camera1"]) == read_card(seen[CAMERA]) == (0, 0)
        assert (await served.result(token))["encodings"] == {"observation/camera1": "jpeg:60"}
    for how in (RobotEndpoint.inline, RobotEndpoint.spawn):
        with pytest.raises(UnknownName, match=r"no camera to encode 'scene'\. There are: observation/camera0"):
            await how(spec(), encode={"scene": "jpeg"}).start()


# Order, freshness, account ----------------------------------------------------------------------------------------


@on_loop
async def test_slots_that_are_encoded_side_by_side_keep_their_own_order() -> None:
    async with world(num_envs=3, cameras=2) as served:
        slots = set()

        async def one(seed: int) -> None:
            async with joined(served, seed=seed) as (robot, _):
                cards = [read_encoded(heard.data[CAMERA]) for heard in await play(robot, 30)]
                assert cards == [(cards[0][0], tick) for tick in range(31)]
                slots.add(cards[0][0])

        await asyncio.gather(*(one(seed) for seed in range(3)))
    assert slots == {0, 1, 2}


@on_loop
async def test_in_realtime_an_image_is_of_the_tick_that_it_is_shown_for_and_the_newest_wins() -> None:
    timing = {"mode": "realtime", "policy_deadline_s": 60.0}
    async with world(control_rate=200.0, timing=timing) as served, joined(served) as (robot, token):
        heard = await robot.get_observation()
        await robot.send_chunk(zeros(robot, 400))
        seen = []
        while heard.index < 150:
            heard = await robot.get_observation()
            seen.append(heard.index)
            assert read_encoded(heard.data[CAMERA]) == (0, heard.index)
            await asyncio.sleep(0.02)
        assert seen == sorted(set(seen))
        assert robot.skipped > 20
        record = await served.result(token)
    cadence = Cadence.from_json(record["cadence"])
    assert 0 < cadence.stages["compress"].count < record["ticks"]  # what is skipped is not encoded


@on_loop
async def test_the_account_has_the_time_and_the_bytes() -> None:
    async with world(width=160, height=120) as served:
        async with joined(served) as (robot, token):
            seen = await play(robot, 10)
        record = await served.result(token)
        async with joined(served, encodings=()) as (other, token):
            await play(other, 10)
        raw_record = await served.result(token)
    world_side, agent_side = Cadence.from_json(record["cadence"]), robot.cadence
    assert world_side.stages["compress"].count == len(seen) == agent_side.stages["decompress"].count
    size, full = (Cadence.from_json(r["cadence"]).summary()["frame_bytes"] for r in (record, raw_record))
    assert size["max"] < 160 * 120 * 3 / 2
    assert 160 * 120 * 3 < full["p50"] < 160 * 120 * 3 + 2000
    assert Cadence.from_json(raw_record["cadence"]).stages["compress"].count == 0
    assert other.cadence.stages["decompress"].count == 0


@on_loop
async def test_what_the_images_were_is_told_for_the_fingerprints() -> None:
    async def fingerprints(**how: Any) -> tuple[str, str | None]:
        async with joined(served, seed=3, **how) as (robot, token):
            chain = HashChain(robot.contract)
            for heard in await play(robot, 6):
                chain.add(heard.data, heard.reward, None, heard.meta.get("digests", {}))
            await served.result(token)
            return chain.finish()

    async with world() as served:
        assert await fingerprints() == await fingerprints(encodings=())


@on_loop
async def test_a_run_from_another_host_says_its_encodings_and_has_the_fingerprints_of_what_the_world_showed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(max_ticks=6) as served:

        async def report() -> RunReport:
            return await run_episodes(served, RobotAgent(Still()), RunOptions(), world="card", policy="still")

        here = await report()
        monkeypatch.setattr("hudsim.robot.client.clock_id", lambda: "another host's")
        monkeypatch.setattr(Ring, "attach", lambda offer: None)
        there = await report()
    assert (here.encodings, there.encodings) == ({}, {CAMERA: "jpeg:90"})
    assert there.to_json()["encodings"] == {CAMERA: "jpeg:90"}
    for report_of in (here, there):
        assert [episode.record["end"] for episode in report_of.episodes] == ["truncated"]
    (one,), (other,) = here.episodes, there.episodes
    assert (one.hash, one.image_hash) == (other.hash, other.image_hash)
    stages = there.cadence.summary()["stages_us"]
    assert stages["compress"]["p50"] > 0
    assert stages["decompress"]["p50"] > 0


@on_loop
async def test_neither_loop_nor_simulator_encodes_and_no_loop_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[str]] = {"encode": set(), "decode": set()}
    for name, seen in threads.items():
        real = getattr(Cameras, name)

        def noted(self: Cameras, data: Any, real: Any = real, seen: set[str] = seen) -> Any:
            seen.add(threading.current_thread().name)
            return real(self, data)

        monkeypatch.setattr(Cameras, name, noted)
    async with world() as served, joined(served) as (robot, _):
        await play(robot, 5)
    assert threads == {"encode": {"hudsim-images"}, "decode": {"hudsim-images"}}


# What goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
@pytest.mark.parametrize("at", [0, 3])
@on_loop
async def test_an_image_that_cannot_be_encoded_ends_the_episode_in_words(
    monkeypatch: pytest.MonkeyPatch, mode: str, at: int
) -> None:
    real, packed = LateFrame.pack, []

    def pack(self: LateFrame) -> bytes:
        packed.append(self)
        if len(packed) > at:
            raise WireError("no memory for a picture")
        return real(self)

    monkeypatch.setattr(LateFrame, "pack", pack)
    async with world(timing={"mode": mode}) as served:
        async with asyncio.timeout(10.0), joined(served) as (robot, token):
            with pytest.raises(SimFailed, match="no memory for a picture"):
                await play(robot, 10_000)
        record = await served.result(token)
        assert (record["end"], record["is_error"]) == ("aborted(sim_failed)", True)
        monkeypatch.undo()
        async with joined(served) as (robot, _):
            assert len(await play(robot, 2)) == 3


@on_loop
async def test_an_agent_that_goes_while_its_image_is_encoded_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    real = LateFrame.pack

    def pack(self: LateFrame) -> bytes:
        begun.set()
        go.wait(10.0)
        return real(self)

    monkeypatch.setattr(LateFrame, "pack", pack)
    async with world() as served:
        async with joined(served) as (_, token):
            await asyncio.to_thread(begun.wait, 10.0)
        assert (await served.result(token))["end"] == "max_steps"
        go.set()
    for thread in threading.enumerate():
        if thread.name == "hudsim-images":
            await asyncio.to_thread(thread.join, 10.0)
            assert not thread.is_alive()


@on_loop
async def test_an_observation_is_not_lost_to_whoever_is_cancelled_while_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()
    real = Cameras.decode

    def decoded(self: Cameras, data: Any) -> Any:
        begun.set()
        go.wait(10.0)
        return real(self, data)

    async with world() as served, joined(served) as (robot, _):
        monkeypatch.setattr(Cameras, "decode", decoded)
        waiting = asyncio.ensure_future(robot.get_observation())
        await asyncio.to_thread(begun.wait, 10.0)
        waiting.cancel()
        await asyncio.wait([waiting])
        go.set()
        async with asyncio.timeout(10.0):
            assert read_encoded((await robot.get_observation()).data[CAMERA]) == (0, 0)


def _image(height: int = 128, width: int = 128) -> dict[str, bytes]:
    return {"jpeg": encode_jpeg(np.zeros((height, width, 3), np.uint8), "rgb", 90)}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({CAMERA: _image(64, 48)}, f"{CAMERA}: got a JPEG of .*64, 48"),
        ({CAMERA: {"jpeg": b"no picture"}}, f"{CAMERA}: got 10 bytes"),
        ({CAMERA: {"jpeg": None}}, f"{CAMERA}: got NoneType"),
        ({CAMERA: {"png": b""}}, r"got a map of \['png'\], expected {jpeg: bytes}"),
        ({CAMERA: {}}, r"got a map of \[\]"),
        ({"observation/state": _image()}, r"observation/state: got a map of \['jpeg'\], expected an array"),
        ({"elsewhere": _image()}, "elsewhere: got a map"),
    ],
)
@on_loop
async def test_what_a_world_sends_in_place_of_an_image_is_not_trusted(sent: dict[str, Any], words: str) -> None:
    contract = Coloured().contract.to_json()

    async def hostile(link: Link) -> None:
        await link.send(encode({"protocol": "hudsim/1", "contract": contract}))
        await link.receive()
        await link.send(encode({**sent, "terminated": False, "reward": 0.0, "meta": {"obs_index": 0}}))
        await link.receive()

    server = Server({"/robot/robot": hostile}, bearer=None)
    address = await server.start()
    try:
        async with await RobotClient.connect(address.at("/robot/robot").url) as robot:
            for _ in range(2):
                with pytest.raises(DecodeError, match=words):
                    await robot.get_observation()
    finally:
        await server.stop()


def test_images_of_one_observation_take_no_more_than_a_frame() -> None:
    feature = {"role": "observation", "type": "gray", "dtype": "uint8", "shape": [8000, 8000], "encoding": "jpeg"}
    action = {"role": "action", "shape": [1]}
    contract = Contract.load({"schema": "hudsim/1", "features": {"a": feature, "b": feature, "action": action}})
    item = {"jpeg": encode_jpeg(np.zeros((8000, 8000), np.uint8), "gray", 10)}
    cameras = Cameras(contract)
    assert cameras.decode({"a": item})["a"].shape == (8000, 8000)
    with pytest.raises(DecodeError, match="b: got images of over 67108864 bytes"):
        cameras.decode({"a": item, "b": item})


def test_a_record_of_before_bytes_were_counted_still_loads() -> None:
    document = Cadence(50.0).to_json()
    del document["frame_bytes"]
    assert Cadence.from_json(document).summary()["frame_bytes"] is None
