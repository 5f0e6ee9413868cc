"""The frame of every tick, put together and taken apart by its parts, says what encoding and decoding say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import DecodeError
from hudsim.wire.codec import decode, encode, encode_pieces
from hudsim.wire.format import ARRAY
from hudsim.wire.ring import Ring, room
from hudsim.wire.usual_observations import UsualObservations

Observation = dict[str, Any]

DTYPES = ["float32", "float64", "float16", "int64", "int8", "uint8", "uint16", "bool"]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (8, 3), (64, 64, 3), (128, 200, 3)]

layouts = st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES)), max_size=4).map(
    lambda chosen: [(f"observation/{at}", np.dtype(dtype), shape) for at, (dtype, shape) in enumerate(chosen)]
)
words = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=9)
metas = st.dictionaries(st.text(max_size=40), words, min_size=1, max_size=15)
rewards, successes = st.floats(allow_nan=False), st.sampled_from([None, True, False])


def shown(layout: Any, seed: int) -> Observation:
    draw = np.random.default_rng(seed)
    return {name: np.asarray((draw.random(shape) * 200 - 100).astype(dtype)) for name, dtype, shape in layout}


def message(data: Observation, reward: float, success: bool | None, meta: Observation) -> Observation:
    return {**data, "terminated": False, "truncated": False, "reward": reward, "success": success, "meta": meta}


def ring_for(data: Observation) -> Ring | None:
    return Ring.create(room(array.nbytes for array in data.values()))


@given(layout=layouts, reward=rewards, success=successes, meta=metas, seed=st.integers(0, 99), shared=st.booleans())
def test_what_it_writes_is_what_encoding_gives_and_what_it_reads_is_what_decoding_says(
    layout: Any, reward: float, success: bool | None, meta: Observation, seed: int, shared: bool
) -> None:
    usual = UsualObservations.of(layout)
    assert usual is not None
    data = shown(layout, seed)
    rings = (ring_for(data), ring_for(data)) if shared else (None, None)
    pages = [None if ring is None else ring.pages.take() for ring in rings]
    written = usual.write(data, reward, success, meta, pages[0])
    assert written is not None
    frame = b"".join(written)
    assert frame == b"".join(encode_pieces(message(data, reward, success, meta), pages[1]))
    read = usual.read(frame, rings[0])
    assert read is not None
    whole = decode(frame, shared=rings[0])
    assert [*read.data] == [name for name, _, _ in layout]
    for name, array in read.data.items():
        np.testing.assert_array_equal(array, whole[name], strict=True)
        assert array.flags.aligned
        assert not array.flags.writeable
    assert encode(read.reward) == encode(whole["reward"])  # tells -0.0 from 0.0
    assert (read.reward, read.success, read.meta) == (whole["reward"], whole["success"], whole["meta"])


@pytest.mark.parametrize("changes", [{"terminated": True}, {"meta": {"chunk": [1]}}, {"meta": {"result": None}}])
def test_a_frame_that_is_left_to_the_decoder_is_not_looked_at(changes: Observation) -> None:
    """Or its page would be free again before the decoder comes to it."""
    data = shown(LAYOUT, 1)
    ring, usual = ring_for(data), UsualObservations.of(LAYOUT)
    assert ring is not None
    assert usual is not None
    page = ring.pages.take()
    assert page is not None
    frame = b"".join(encode_pieces({**message(data, 0.5, None, META), **changes}, page))
    page.sent()
    assert usual.read(frame, ring) is None
    np.testing.assert_array_equal(decode(frame, shared=ring)["camera"], data["camera"])


LAYOUT: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [
    ("state", np.dtype("float32"), (8,)),
    ("camera", np.dtype("uint8"), (96, 96, 3)),
]
META = {"episode": "0-0123456789abcdef", "obs_index": 7, "t_send_ns": 123456789}


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), shared=st.booleans())
def test_a_changed_byte_is_never_taken_for_something_else(at: int, byte: int, shared: bool) -> None:
    usual = UsualObservations.of(LAYOUT)
    assert usual is not None
    data = shown(LAYOUT, 1)
    ring = ring_for(data) if shared else None
    written = usual.write(data, 0.5, None, META, None if ring is None else ring.pages.take())
    assert written is not None
    changed = bytearray(b"".join(written))
    changed[at % len(changed)] = byte
    try:
        read = usual.read(bytes(changed), ring)
    except DecodeError:
        with pytest.raises(DecodeError):
            decode(bytes(changed), shared=ring)
        return
    if read is not None:
        whole = decode(bytes(changed), shared=ring)
        assert encode(message(read.data, read.reward, read.success, read.meta)) == encode(whole)


@pytest.mark.parametrize("cut", [1, 2, 9, 40, 27_700])
def test_a_frame_that_breaks_off_is_left_to_the_decoder(cut: int) -> None:
    usual = UsualObservations.of(LAYOUT)
    assert usual is not None
    frame = encode(message(shown(LAYOUT, 1), 0.5, None, META))
    assert usual.read(frame, None) is not None
    assert usual.read(frame[:-cut], None) is None
    assert usual.read(frame + b"\xc0", None) is None


def _other(**changes: Any) -> bytes:
    return encode({**message(shown(LAYOUT, 1), 0.5, None, META), **changes})


@pytest.mark.parametrize(
    "other",
    [
        _other(terminated=True),
        _other(truncated=True),
        _other(success=1),
        _other(reward=1),
        _other(meta={**META, "clipped": [1]}),
        _other(meta={}),
        _other(meta=None),
        _other(state=np.zeros(8, np.float64)),
        _other(state=np.zeros((1, 8), np.float32)),
        _other(state=np.zeros(8, ">f4")),
        _other(camera={"jpeg": b"..."}),
        _other(more=1),
        encode({"result": {"end": "terminated"}, "meta": META}),
        b"",
    ],
    ids=range(14),
)
def test_any_other_frame_is_left_to_the_decoder(other: bytes) -> None:
    usual = UsualObservations.of(LAYOUT)
    assert usual is not None
    read = usual.read(other, None)
    if read is not None:  # another byte order is put in the wire's
        assert encode(message(read.data, read.reward, read.success, read.meta)) == other


@pytest.mark.parametrize(
    "changes",
    [
        {"state": np.zeros(8, np.float64)},
        {"state": np.zeros(7, np.float32)},
        {"state": [0.0] * 8},
        {"camera": {"jpeg": b"..."}},
        {"camera": np.zeros((96, 3, 96), np.uint8).transpose(0, 2, 1)},
    ],
    ids=["dtype", "shape", "list", "encoded", "strides"],
)
def test_data_of_another_layout_is_left_to_the_encoder(changes: Observation) -> None:
    usual = UsualObservations.of(LAYOUT)
    assert usual is not None
    assert usual.write({**shown(LAYOUT, 1), **changes}, 0.0, None, META, None) is None


@pytest.mark.parametrize("meta", [{}, {"clipped": [1]}, {"n": 2**64}, {ARRAY: True}])
def test_a_meta_that_is_not_flat_is_left_to_the_encoder(meta: Observation) -> None:
    usual = UsualObservations.of(LAYOUT)
    assert usual is not None
    written = usual.write(shown(LAYOUT, 1), 0.0, None, meta, None)
    if written is not None:
        assert b"".join(written) == encode(message(shown(LAYOUT, 1), 0.0, None, meta))


@pytest.mark.parametrize(
    "layout",
    [
        [("state", np.dtype("float32"), (0, 3))],
        [("state", np.dtype(">f4"), (3,))],
        [("state", np.dtype("complex64"), (3,))],
        [("reward", np.dtype("float32"), (3,))],
        [(ARRAY, np.dtype("float32"), (3,))],
        [("huge", np.dtype("uint8"), (64 << 20,))],
    ],
    ids=["empty", "byte order", "not carried", "own key", "mark", "large"],
)
def test_some_layouts_have_no_usual_frame(layout: Any) -> None:
    assert UsualObservations.of(layout) is None
