"""Shared memory: what crosses it, how long it stays, and offers that are not what they say."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import DecodeError
from hudsim.wire.codec import decode, encode, encode_pieces
from hudsim.wire.ring import LARGE, Ring, room
from hudsim.wire.segment import HEADER, Segment
from hudsim.wire.session import Peer, encode_observation

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a memfd is Linux's")

CAMERA = np.arange(120 * 160 * 3, dtype=np.uint8).reshape(120, 160, 3)
STATE = np.arange(8, dtype=np.float32)


def ring(*arrays: Any) -> tuple[Ring, Ring]:
    """A ring for frames of ``arrays``, as its world has it and as its agent does."""
    world = Ring.create(room(array.nbytes for array in arrays))
    assert world is not None
    agent = Ring.attach(json.loads(json.dumps(world.offer)))
    assert agent is not None
    return world, agent


def sent(world: Ring, message: dict[str, Any]) -> bytes:
    page = world.pages.take()
    frame = encode(message, page)
    if page is not None:
        page.sent()
    return frame


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def maps() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:hudsim-frames")


@pytest.mark.parametrize(
    "array",
    [
        CAMERA,
        CAMERA[::-1],
        CAMERA[:, ::-1, ::-1],
        CAMERA.astype(">i4"),
        np.arange(10_000, dtype=np.float64).reshape(100, 100).T,
        np.random.default_rng(0).random(9_000) > 0.5,
        np.arange(20_000, dtype=np.float16),
    ],
    ids=["plain", "rows", "mirrored", "big-endian", "transposed", "bool", "half"],
)
def test_a_large_array_comes_whole_whatever_its_strides(array: Any) -> None:
    array = np.resize(array, (2, *array.shape)) if array.nbytes < LARGE else array
    world, agent = ring(array)
    frame = sent(world, {"camera": array, "state": STATE})
    heard = decode(frame, shared=agent)
    assert len(frame) < 300
    np.testing.assert_array_equal(heard["camera"], array)
    assert heard["camera"].dtype == array.dtype.newbyteorder("=")
    assert not heard["camera"].flags.writeable
    np.testing.assert_array_equal(heard["state"], STATE)


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "<f4", ">f4", "f8"])
def test_a_frame_in_pieces_is_the_same_frame(dtype: str) -> None:
    large = np.arange(3 * 50 * 60).reshape(3, 50, 60).astype(dtype)
    large = np.resize(large, (3, 50, 120)) if large.nbytes < LARGE else large
    message = {"a": large, "meta": {"n": [1, 2.5, None]}, "b": large[1], "c": large[:, ::-1], "d": large[..., 0]}
    for part in (message, {"a": large, "b": large}, {"n": 1}):
        pieces = encode_pieces(part)
        assert b"".join(pieces) == encode(part)
    assert sum(isinstance(piece, memoryview) for piece in encode_pieces({"a": large, "b": large})) == (
        2 if large.dtype.isnative else 0
    )


def test_small_arrays_and_what_has_no_room_stay_in_the_frame() -> None:
    world, agent = ring(CAMERA)
    heard = decode(sent(world, {"a": CAMERA, "b": CAMERA}), shared=agent)
    assert heard["b"].base is not heard["a"].base
    for name in "ab":
        np.testing.assert_array_equal(heard[name], CAMERA)
    assert len(sent(world, {"state": np.zeros(LARGE - 1, np.uint8)})) > LARGE - 1


def test_a_frame_is_looked_at_once() -> None:
    """Its page is free when the views of it are gone, and may hold another frame by then."""
    world, agent = ring(CAMERA)
    frame = sent(world, {"camera": CAMERA})
    decode(frame, shared=agent)
    with pytest.raises(DecodeError, match="has been given back"):
        decode(frame, shared=agent)


def test_a_view_stays_as_it_is_for_as_long_as_it_is_held() -> None:
    world, agent = ring(CAMERA)
    frames = [np.full_like(CAMERA, number) for number in range(40)]
    held = [decode(sent(world, {"camera": frame}), shared=agent)["camera"] for frame in frames]
    for got, frame in zip(held, frames, strict=True):
        np.testing.assert_array_equal(got, frame)
    crop = held[3][10:20]
    held.clear()
    gc.collect()
    for _ in range(40):
        decode(sent(world, {"camera": CAMERA}), shared=agent)
    np.testing.assert_array_equal(crop, frames[3][10:20])


def test_a_page_is_free_again_when_its_last_view_is_gone_and_not_before() -> None:
    world, agent = ring(CAMERA, CAMERA)
    frame = sent(world, {"a": CAMERA, "b": CAMERA})
    heard = decode(frame, shared=agent)
    count = world.pages.geometry[0]
    rest = [world.pages.take() for _ in range(count)]
    assert rest[-1] is None
    del heard["a"]
    assert world.pages.take() is None
    heard.clear()
    assert world.pages.take() is not None


def test_a_frame_that_is_dropped_unsent_gives_its_page_back() -> None:
    world, _ = ring(CAMERA)
    peer = Peer("hudsim/1", ring=world)
    plain: dict[str, Any] = {"terminated": False, "truncated": False, "reward": 0.0, "success": None, "meta": {}}
    for _ in range(100):
        assert encode_observation({"camera": CAMERA}, peer=peer, page=peer.page(), **plain).page is not None
    for _ in range(100):
        assert encode_observation({"state": STATE}, peer=peer, page=peer.page(), **plain).page is None
    kept = [encode_observation({"camera": CAMERA}, peer=peer, page=peer.page(), **plain) for _ in range(100)]
    assert sum(frame.page is not None for frame in kept) == world.pages.geometry[0]


def test_views_outlive_both_ends_of_the_ring() -> None:
    world, agent = ring(CAMERA)
    heard = decode(sent(world, {"camera": CAMERA}), shared=agent)
    world.shut()
    del world, agent
    gc.collect()
    np.testing.assert_array_equal(heard["camera"], CAMERA)


def test_what_a_forked_child_lets_go_of_its_parent_still_holds() -> None:
    world, agent = ring(CAMERA)
    heard = decode(sent(world, {"camera": CAMERA}), shared=agent)
    page = world.pages.take()
    if (child := os.fork()) == 0:
        heard.clear()
        del page
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    for _ in range(40):
        decode(sent(world, {"camera": CAMERA + np.uint8(1)}), shared=agent)
    np.testing.assert_array_equal(heard["camera"], CAMERA)
    del page


def test_another_view_of_a_room_than_the_whole_is_copied() -> None:
    world, agent = ring(np.zeros(8192), np.zeros(8192))
    page = world.pages.take()
    assert page is not None
    room_ = page.room((8192,), np.dtype(np.float64))
    assert room_ is not None
    room_[:] = 1.0
    halves = room_.view(np.float32)[8192:]
    heard = decode(encode({"a": room_, "b": halves, "c": room_[::1]}, page), shared=agent)
    np.testing.assert_array_equal(heard["a"], room_)
    np.testing.assert_array_equal(heard["b"], halves)


def test_views_may_be_let_go_of_on_any_thread() -> None:
    world, agent = ring(CAMERA)
    held = [decode(sent(world, {"camera": CAMERA}), shared=agent) for _ in range(world.pages.geometry[0])]
    assert world.pages.take() is None
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert world.pages.take() is not None


def test_nothing_is_left_of_a_ring() -> None:
    ring(CAMERA)
    gc.collect()
    before, mapped = files(), maps()
    for _ in range(50):
        world, agent = ring(CAMERA)
        decode(sent(world, {"camera": CAMERA}), shared=agent)
        world.shut()
        world.shut()
        del world, agent
    gc.collect()
    assert files() <= before
    assert maps() <= mapped


def test_only_what_is_used_takes_memory() -> None:
    """A ring for 480x480 cameras claims 64 MB of addresses; one page of it is used."""
    world = Ring.create(room([1 << 20, 1 << 20]))
    assert world is not None
    for _ in range(20):
        assert len(encode({"camera": np.zeros(1 << 20, np.uint8)}, world.pages.take())) < 200
    fd = world.offer["fd"]
    assert os.fstat(fd).st_blocks * 512 < 4 << 20


def test_who_writes_costs_no_memory_a_frame() -> None:
    world, agent = ring(CAMERA)
    for _ in range(10):
        decode(sent(world, {"camera": CAMERA}), shared=agent)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            decode(sent(world, {"camera": CAMERA}), shared=agent)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


# Offers and places that are not what they say --------------------------------------------------------------------


@contextmanager
def memfd(size: int, *, seals: int = 0) -> Iterator[dict[str, Any]]:
    fd = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, 1033, seals)
        yield {"pid": os.getpid(), "fd": fd, "size": size, "nonce": "00" * 16}
    finally:
        os.close(fd)


def test_only_the_memory_that_is_meant_is_attached_to() -> None:
    segment = Segment.create(HEADER * 2)
    assert segment is not None
    good = segment.offer
    assert Segment.attach(good) is not None
    for change in (
        {"nonce": "11" * 16},
        {"nonce": "xyz"},
        {"nonce": 7},
        {"size": HEADER * 3},
        {"size": HEADER},
        {"size": -1},
        {"size": 1 << 60},
        {"pid": 2**22 + 1},
        {"pid": -1},
        {"pid": "self"},
        {"pid": True},
        {"fd": 10_000},
        {"fd": None},
        {"fd": "../../../etc/passwd"},
    ):
        assert Segment.attach(good | change) is None, change
    for missing in good:
        assert Segment.attach({key: value for key, value in good.items() if key != missing}) is None
    segment.shut()
    assert Segment.attach(good) is None


def test_memory_that_its_owner_could_cut_short_is_not_attached_to() -> None:
    """Reading there would kill the process with SIGBUS."""
    with memfd(HEADER * 2) as offer:
        assert Segment.attach(offer) is None
    segment = Segment.create(HEADER * 2)
    assert segment is not None
    with pytest.raises(PermissionError):
        os.ftruncate(segment.offer["fd"], 0)


def test_no_file_of_another_kind_is_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(HEADER * 2))
    with plain.open("r+b") as file:
        for fd in (reading, file.fileno(), 0):
            assert Segment.attach({"pid": os.getpid(), "fd": fd, "size": HEADER * 2, "nonce": "00" * 16}) is None
    os.close(reading)
    assert plain.read_bytes() == bytes(HEADER * 2)


@pytest.mark.parametrize(
    "offer",
    [
        None,
        7,
        [],
        {},
        {"pages": [4, HEADER], "back": [4, HEADER]},
        {"pages": [0, HEADER], "back": [4, HEADER], "size": HEADER * 5},
        {"pages": [1 << 40, HEADER], "back": [4, HEADER], "size": HEADER * 5},
        {"pages": [4, 100], "back": [4, HEADER], "size": HEADER * 5},
        {"pages": [4, HEADER, 1], "back": [4, HEADER], "size": HEADER * 9},
        {"pages": ["4", HEADER], "back": [4, HEADER], "size": HEADER * 9},
    ],
)
def test_an_offer_that_makes_no_sense_is_declined(offer: Any) -> None:
    assert Ring.attach(offer) is None


def test_another_geometry_than_the_memory_s_is_declined() -> None:
    world = Ring.create(room([CAMERA.nbytes]))
    assert world is not None
    count, size = world.offer["pages"]
    assert Ring.attach(world.offer | {"pages": [count - 1, size]}) is None
    assert Ring.attach(world.offer | {"pages": [count, size + HEADER]}) is None


@given(place=st.integers(0, 1 << 40), shape=st.lists(st.integers(0, 1 << 20), max_size=4))
def test_a_place_is_within_a_page_or_refused(place: int, shape: list[int]) -> None:
    world = Ring.create(room([CAMERA.nbytes]))
    assert world is not None
    frame = _described(place, shape)
    try:
        array = decode(frame, shared=world)
    except DecodeError:
        return
    array.sum()  # all of it can be read
    assert array.shape == tuple(shape)


@pytest.mark.parametrize("shape", [[0, 2**32 - 1, 2**32 - 1], [2**31, 0, 2**31, 2**31]])
def test_an_empty_array_with_endless_axes_is_refused(shape: list[int]) -> None:
    world, agent = ring(CAMERA)
    with pytest.raises(DecodeError, match="shorter axes"):
        decode(_described(world.offer["size"] - HEADER, shape), shared=agent)


def test_without_shared_memory_a_place_is_no_array() -> None:
    with pytest.raises(DecodeError, match="expected bytes and list"):
        decode(_described(HEADER, [4]))


def test_places_that_cross_pages_or_are_not_aligned_are_refused() -> None:
    world, agent = ring(CAMERA)
    size = world.offer["pages"][1]
    for place, count in (
        (HEADER + 1, 4),
        (HEADER + size - 64, 65),
        (0, 4),
        (HEADER - 64, 64),
        (world.offer["size"], 1),
    ):
        with pytest.raises(DecodeError):
            decode(_described(place, [count]), shared=agent)
    page = world.pages.take()
    assert page is not None
    assert decode(_described(HEADER + size - 64, [64]), shared=agent).shape == (64,)


def test_another_process_finds_it_and_what_it_writes_is_seen() -> None:
    world, _ = ring(CAMERA)
    frame = sent(world, {"camera": CAMERA})
    code = (
        "import json, sys\nfrom hudsim.wire.ring import Ring\nfrom hudsim.wire.codec import decode\n"
        "offer, frame = json.loads(sys.stdin.readline()), bytes.fromhex(sys.stdin.readline())\n"
        "ring = Ring.attach(offer)\n"
        "heard = decode(frame, shared=ring)\n"
        "total = int(heard.pop('camera').sum())\n"
        "print(total, flush=True)\nsys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        print(json.dumps(world.offer), frame.hex(), sep="\n", file=child.stdin, flush=True)
        assert int(child.stdout.readline()) == int(CAMERA.sum())
        child.kill()
    pages = [world.pages.take() for _ in range(world.pages.geometry[0])]
    assert pages[-1] is not None  # it had given the page back


def _described(place: int, shape: list[int]) -> bytes:
    """A frame that says that a uint8 array of ``shape`` is at ``place``."""
    example = encode(np.zeros([1] * len(shape), np.uint8))
    head, tail = example.index(b"\xc4\x04data") + 6, example.index(b"\xc4\x05dtype")
    dims = encode(list(shape))
    return example[:head] + encode(place) + example[tail : example.index(b"\xc4\x05shape") + 7] + dims
