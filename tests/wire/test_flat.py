"""Flat maps go by msgpack's own packer and unpacker: no other bytes, no other values, and nothing slips through."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import DecodeError, WireError
from hudsim.wire.codec import decode, encode

PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=40)
META = st.dictionaries(st.text(max_size=40), PLAIN, max_size=20)


@given(META)
def test_it_comes_back_as_it_was(meta: dict[str, Any]) -> None:
    message = {"state": np.zeros(3, np.float32), "n": 1, "meta": meta}
    if "__ndarray__" not in meta and "__npgeneric__" not in meta:
        assert decode(encode(message))["meta"] == meta
        assert decode(encode(message), copy=True)["meta"] == meta


@given(META, st.binary(max_size=3), st.integers(0, 60))
def test_bytes_that_are_cut_or_go_on_are_refused(meta: dict[str, Any], more: bytes, cut: int) -> None:
    frame = encode(
        {"meta": {"a": 1, **meta}} if "__ndarray__" not in meta and "__npgeneric__" not in meta else {"m": {}}
    )
    for broken in (frame + more, frame[: max(1, len(frame) - cut)]):
        if broken != frame:
            with pytest.raises(DecodeError):
                decode(broken)


@pytest.mark.parametrize(
    "meta",
    [
        b"\x82\xa1a\x01\xa1a\x02",  # a key twice
        b"\x81\x01\x02",  # a key that is a number
        b"\x81\xc4\x01a\x02",  # one of bytes
        b"\x81\xa1a\xc7\x01\x05x",  # an extension
        b"\x81\xa1a\xd6\xff\x00\x00\x00\x00",  # a time
        b"\x81\xa2\xff\xfe\x01",  # no UTF-8
        b"\x81\xa1a\xa2\xff\xfe",
        b"\x82\xa1a\x01",
        b"\x81\xc4\x0b__ndarray__\xc3",
        b"\x81\xab__ndarray__\xc3",
    ],
)
def test_what_is_refused_elsewhere_is_refused_there(meta: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(b"\x81\xa4meta" + meta)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"n": 2**64}, r"message\['meta'\]\['n'\]: got an int of 65 bits"),
        ({"n": -(2**63) - 1}, "below"),
        ({"t": "\ud800"}, "UTF-8"),
        ({1: 1}, "expected str"),
        ({"__ndarray__": 1}, "kept for numpy"),
        ({"o": object()}, "got object"),
    ],
)
def test_what_cannot_be_said_is_told_where_it_stands(meta: dict[Any, Any], words: str) -> None:
    with pytest.raises(WireError, match=words):
        encode({"meta": meta})


def test_subclasses_of_plain_types_are_sent_as_what_they_are() -> None:
    class Word(str):
        __slots__ = ()

    assert decode(encode({"meta": {"n": np.float64(1.5), "w": Word("x"), "b": np.bool_(True)}})) == {
        "meta": {"n": 1.5, "w": "x", "b": True}
    }


@given(META)
def test_the_bytes_are_msgpacks(meta: dict[str, Any]) -> None:
    if "__ndarray__" not in meta and "__npgeneric__" not in meta:
        assert encode({"meta": meta}) == msgpack.packb({"meta": meta})
