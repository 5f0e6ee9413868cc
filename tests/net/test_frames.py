"""Bytes to messages: any legal stream however it is cut, and any illegal one, beside the ``websockets`` library."""

from __future__ import annotations

import itertools
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from hudsim.net.frames import BINARY, TEXT, Close, FrameReader, Violation, apply_mask, head

MIB = 1 << 20
SIZES = st.sampled_from([0, 1, 2, 124, 125, 126, 127, 16_370, 16_383, 16_384, 16_400, 65_535, 65_536, 100_000])


def framed(first: int, payload: bytes, *, masked: bool) -> bytes:
    key = random.Random(len(payload)).randbytes(4) if masked else b""
    start = head(first, len(payload), masked=masked)
    return start + key + (apply_mask(payload, key) if masked else payload)


@st.composite
def streams(draw: st.DrawFn, *, masked: bool, text: bool = True) -> tuple[bytes, list[bytes | str]]:
    """Messages as a peer may send them, in fragments and with control frames between, and what they are."""
    out, messages = bytearray(), []
    for _ in range(draw(st.integers(0, 4))):
        message: bytes | str = draw(
            st.binary(max_size=300)
            | SIZES.map(lambda size: random.Random(size).randbytes(size))
            | (st.text(max_size=100) if text else st.nothing())
        )
        messages.append(message)
        payload = message.encode() if isinstance(message, str) else message
        cuts = sorted(draw(st.lists(st.integers(0, len(payload)), max_size=3)))
        pieces = [payload[a:b] for a, b in itertools.pairwise([0, *cuts, len(payload)])]
        for at, piece in enumerate(pieces):
            kind = (TEXT if isinstance(message, str) else BINARY) & 0x0F if at == 0 else 0
            out += framed(kind | (0x80 if at == len(pieces) - 1 else 0), piece, masked=masked)
            for control in draw(st.lists(st.sampled_from([0x89, 0x8A]), max_size=2)):
                out += framed(control, draw(st.binary(max_size=125)), masked=masked)
    return bytes(out), messages


def taken(reader: FrameReader) -> list[bytes | str]:
    return [reader.take() for _ in range(len(reader.messages))]


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    at = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    return [data[a:b] for a, b in itertools.pairwise([0, *at, len(data)])]


@given(st.data(), st.booleans())
def test_any_cut_of_a_legal_stream_gives_its_messages(data: st.DataObject, masked: bool) -> None:
    stream, messages = data.draw(streams(masked=masked))
    reader = FrameReader(masked=masked, max_bytes=MIB)
    for piece in data.draw(cut(stream)):
        reader.feed(piece)
    heard = taken(reader)
    assert heard == messages
    assert [type(message) for message in heard] == [type(message) for message in messages]


def library(*, masked: bool) -> Protocol:
    """The library's reader of frames that are masked, or are not."""
    if masked:
        return ServerProtocol(state=State.OPEN, max_size=MIB)
    return ClientProtocol(parse_uri("ws://x/"), state=State.OPEN, max_size=MIB)


@given(st.data(), st.booleans())
def test_a_stream_that_was_tampered_with_ends_as_the_library_ends_it(data: st.DataObject, masked: bool) -> None:
    stream = bytearray(data.draw(streams(masked=masked, text=False))[0] + framed(BINARY, b"last", masked=masked))
    for _ in range(data.draw(st.integers(0, 2))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    theirs, reader, code = library(masked=masked), FrameReader(masked=masked, max_bytes=MIB), None
    theirs.receive_data(bytes(stream))
    frames = [event for event in theirs.events_received() if isinstance(event, Frame)]
    try:
        for piece in data.draw(cut(bytes(stream))):
            reader.feed(piece)
    except Violation as violation:
        code = violation.args[0]
    assert taken(reader) == joined(frames)
    if code == 1007:  # the library's frames hold bytes still
        return
    if code is not None and theirs.close_sent is None:  # it looks at the whole of a frame, and some is missing
        theirs.receive_data(bytes(2 * MIB))
    heard, said = theirs.close_rcvd, theirs.close_sent
    assert reader.close == (Close(heard.code, heard.reason) if heard else None)
    if heard is None:
        assert (code, said and said.code) in ((None, None), (1002, 1002), (1009, 1009), (1002, 1009))


def joined(frames: list[Frame]) -> list[bytes | str]:
    """The messages in the library's ``frames``, up to the first text that is none."""
    whole: list[bytes | str] = []
    kind, parts = Opcode.BINARY, b""
    for frame in frames:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            kind, parts = frame.opcode, b""
        elif frame.opcode is not Opcode.CONT:
            continue
        parts += bytes(frame.data)
        if not frame.fin:
            continue
        try:
            whole.append(parts.decode() if kind is Opcode.TEXT else parts)
        except UnicodeDecodeError:
            break
    return whole


ILLEGAL = {
    "a reserved bit": (b"\xc2\x01x", 1002),
    "a reserved opcode": (b"\x83\x01x", 1002),
    "a reserved control opcode": (b"\x8b\x00", 1002),
    "a control frame in fragments": (b"\x09\x00", 1002),
    "a control frame over 125 bytes": (b"\x89\x7e\x00\x7e", 1002),
    "a continuation of nothing": (b"\x80\x01x", 1002),
    "a message within another": (b"\x02\x01x\x82\x01y", 1002),
    "a masked frame": (b"\x82\x81abcdx", 1002),
    "a close of one byte": (b"\x88\x01\x03", 1002),
    "a close with a code that is none": (b"\x88\x02\x03\xed", 1002),
    "a close with a code that nobody may use": (b"\x88\x02\x00\x01", 1002),
    "a close whose reason is no text": (b"\x88\x03\x03\xe8\xff", 1007),
    "a text that is none": (b"\x81\x01\xff", 1007),
    "a text in fragments that is none": (b"\x01\x01\xc3\x80\x01x", 1007),
    "a message that is too large": (b"\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x01", 1009),
    "a message that is far too large": (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1009),
    "fragments that are too large together": (
        b"\x02\x7f" + (MIB - 1).to_bytes(8) + bytes(MIB - 1) + b"\x00\x01x\x80\x01y",
        1009,
    ),
}


def feed(reader: FrameReader, data: bytes, step: int) -> None:
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])


@pytest.mark.parametrize("name", ILLEGAL)
@pytest.mark.parametrize("step", [7, 1 << 30])
def test_what_is_illegal_has_its_code_and_what_came_before_is_kept(name: str, step: int) -> None:
    stream, code = ILLEGAL[name]
    reader = FrameReader(masked=False, max_bytes=MIB)
    reader.feed(b"\x82\x02ok")
    with pytest.raises(Violation) as refused:
        feed(reader, stream, step)
    assert refused.value.args[0] == code
    assert len(refused.value.args[1].encode()) <= 123, "it goes into a close frame"
    reader.feed(b"\x82\x02no" * 10_000)
    assert taken(reader) == [b"ok"]
    assert reader.close is None


def test_a_server_refuses_what_is_not_masked() -> None:
    reader = FrameReader(masked=True, max_bytes=MIB)
    with pytest.raises(Violation, match="without a mask"):
        reader.feed(b"\x82\x00")


def test_a_close_is_the_last_that_is_heard() -> None:
    reader = FrameReader(masked=False, max_bytes=MIB)
    reader.feed(b"\x82\x01a\x88\x05\x11\x38bye\x82\x01b\xff\xff")
    reader.feed(b"\x82\x01c" * 10_000)
    assert taken(reader) == [b"a"]
    assert reader.close == Close(4408, "bye")
    reader = FrameReader(masked=False, max_bytes=MIB)
    reader.feed(b"\x88\x00")
    assert reader.close == Close(1005)


def test_a_size_that_is_only_promised_takes_no_memory() -> None:
    reader = FrameReader(masked=False, max_bytes=1 << 30)
    tracemalloc.start()
    try:
        reader.feed(head(BINARY, 1 << 30, masked=False) + b"x" * 1000)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
        reader.feed(bytes(8 * MIB))
        assert tracemalloc.get_traced_memory()[1] < 40 * MIB
    finally:
        tracemalloc.stop()


def test_a_large_message_is_read_to_where_it_stays() -> None:
    reader, piece = FrameReader(masked=False, max_bytes=64 * MIB), bytes(64 << 10)
    reader.feed(head(BINARY, 8 * MIB, masked=False))
    tracemalloc.start()
    try:
        for _ in range(128):
            reader.feed(piece)
        message = reader.take()
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB, "no copy of it was ever made"
    finally:
        tracemalloc.stop()
    assert len(message) == 8 * MIB


def test_many_fragments_take_no_more_memory_than_their_bytes() -> None:
    reader = FrameReader(masked=False, max_bytes=MIB)
    reader.feed(b"\x02\x01x")
    tracemalloc.start()
    try:
        for _ in range(4):
            reader.feed(b"\x00\x02xy\x00\x00" * 5_000)
        assert tracemalloc.get_traced_memory()[1] < MIB // 4
    finally:
        tracemalloc.stop()
    reader.feed(b"\x80\x00")
    assert [len(message) for message in taken(reader)] == [40_001]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 5_000_000])
def test_a_large_message_is_bytes_of_exactly_its_size(masked: bool, size: int) -> None:
    payload = random.Random(size).randbytes(size)
    reader = FrameReader(masked=masked, max_bytes=8 * MIB)
    reader.feed(framed(BINARY, payload, masked=masked) + framed(BINARY, b"next", masked=masked))
    heard = taken(reader)
    assert heard == [payload, b"next"]
    assert type(heard[0]) is bytes


@given(st.data())
def test_headers_are_the_library_s(data: st.DataObject) -> None:
    size, masked = data.draw(SIZES | st.integers(0, 70_000)), data.draw(st.booleans())
    start = head(BINARY, size, masked=masked)
    theirs = Frame(Opcode.BINARY, bytes(size)).serialize(mask=masked)
    assert theirs[: len(start)] == start
    assert len(theirs) == len(start) + 4 * masked + size
