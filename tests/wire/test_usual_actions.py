"""The frame of every tick, known by its bytes, says what a full decoding says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.wire.codec import decode, encode
from hudsim.wire.usual_actions import UsualActions

TOKEN = "0-0123456789abcdef"


def frame(array: np.ndarray, index: object = 7, token: str = TOKEN) -> bytes:
    return encode({"actions": array, "episode": token, "obs_index": index})


@given(index=st.integers(0, 2**33), seed=st.integers(0, 1000))
@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (8,)), ("float64", (2, 3)), ("int64", ()), ("uint8", (3,)), ("bool", (2,))]
)
def test_what_it_knows_is_what_decoding_says(dtype: str, shape: tuple[int, ...], index: int, seed: int) -> None:
    array = (np.random.default_rng(seed).random(shape) * 200 - 100).astype(dtype)
    usual = UsualActions(np.dtype(dtype), shape, TOKEN)
    sent = frame(np.asarray(array), index)
    known, written = usual.match(sent), usual.write(np.asarray(array), TOKEN, index)
    if index >= 2**32:
        assert known is None
        assert written is None
        return
    assert written == sent
    assert known is not None
    whole = decode(sent)
    np.testing.assert_array_equal(known[0], whole["actions"], strict=True)
    assert known[1] == whole["obs_index"] == index
    assert known[0].flags.aligned
    assert known[0].base is None


@pytest.mark.parametrize(
    "other",
    [
        frame(np.zeros(7, np.float32)),
        frame(np.zeros(8, np.float64)),
        frame(np.zeros((1, 8), np.float32)),
        frame(np.zeros(8, np.float32), token="1-0123456789abcdef"),
        frame(np.zeros(8, np.float32), -1),
        frame(np.zeros(8, np.float32), None),
        frame(np.zeros(8, np.float32), 1.0),
        frame(np.zeros(8, np.float32)) + b"\x00",
        frame(np.zeros(8, np.float32), 300)[:-1],
        frame(np.zeros(8, np.float32))[:-1],
        encode({"actions": np.zeros(8, np.float32)}),
        encode({"ack": 3}),
        b"",
    ],
    ids=range(13),
)
def test_any_other_frame_is_left_to_the_decoder(other: bytes) -> None:
    assert UsualActions(np.dtype("float32"), (8,), TOKEN).match(other) is None


@pytest.mark.parametrize(
    ("array", "token", "index"),
    [
        (np.zeros(7, np.float32), TOKEN, 7),
        (np.zeros(8, np.float64), TOKEN, 7),
        ([0.0] * 8, TOKEN, 7),
        (np.zeros(8, np.float32), "1-0123456789abcdef", 7),
        (np.zeros(8, np.float32), None, 7),
        (np.zeros(8, np.float32), TOKEN, None),
        (np.zeros(8, np.float32), TOKEN, -1),
        (np.zeros(8, np.float32), TOKEN, True),
    ],
    ids=range(8),
)
def test_other_actions_are_left_to_the_encoder(array: Any, token: str | None, index: int | None) -> None:
    assert UsualActions(np.dtype("float32"), (8,), TOKEN).write(array, token, index) is None


@pytest.mark.parametrize(("dtype", "shape"), [("float32", (0,)), (">f4", (8,)), ("float64", (50, 50))])
def test_some_actions_have_no_usual_frame(dtype: str, shape: tuple[int, ...]) -> None:
    assert UsualActions.of(np.dtype(dtype), shape, TOKEN) is None


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_never_taken_for_something_else(at: int, byte: int) -> None:
    usual = UsualActions(np.dtype("float32"), (8,), TOKEN)
    changed = bytearray(frame(np.arange(8, dtype=np.float32), 1000))
    changed[at % len(changed)] = byte
    known = usual.match(bytes(changed))
    if known is not None:
        whole = decode(bytes(changed))
        assert known[0].tobytes() == whole["actions"].tobytes()
        assert known[1] == whole["obs_index"]
