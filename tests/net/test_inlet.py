"""A socket that is lent to another thread: no frame is lost, whoever takes it back when."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from hudsim.net.frames import BINARY, TEXT, FrameReader, apply_mask, head, sole
from hudsim.net.inlet import Inlet
from tests.asyncrun import on_loop

KEY = b"\x01\x02\x03\x04"


def framed(payload: bytes, first: int = BINARY) -> bytes:
    return head(first, len(payload), masked=True) + KEY + apply_mask(payload, KEY)


class Transport:
    """Only notes that it is not to read."""

    def __init__(self) -> None:
        self.paused = False

    def pause_reading(self) -> None:
        self.paused = True


class Lent:
    """An inlet that is lent, the other end of its socket, and what came home."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self.ours, self.home, self.backs = ours, list[bytes](), 0
        transport: Any = Transport()
        self.inlet = Inlet(transport, asyncio.get_running_loop(), self.home.append)
        self.inlet.lend(ours.fileno(), self._back)
        assert transport.paused

    def _back(self) -> None:
        self.backs += 1

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 60_000])
def test_a_whole_frame_is_known(size: int) -> None:
    payload = bytes(range(256)) * 300
    frame = framed(payload[:size])
    assert sole(frame) == payload[:size]
    for other in (frame[:-1], frame + b"x", frame * 2, frame[:1], b"", framed(payload[:size], TEXT)):
        assert sole(other) is None


def test_no_frame_without_a_mask_and_no_length_of_64_bits_is_taken() -> None:
    assert sole(b"\x82\x00" + bytes(132)) is None
    assert sole(b"\x82\xff" + bytes(131)) is None
    assert sole(b"\x82\xff" + (119).to_bytes(8) + KEY + bytes(119)) is None


def test_a_reader_within_a_message_is_not_idle() -> None:
    reader = FrameReader(masked=True, max_bytes=1000)
    assert reader.is_idle
    reader.feed(framed(b"", 0x02))  # the first fragment, of nothing
    assert not reader.is_idle


@on_loop
async def test_what_is_read_is_kept_or_comes_home() -> None:
    lent = Lent()
    lent.theirs.send(framed(b"one"))
    assert lent.inlet.read() == b"one"
    lent.inlet.keep()
    assert lent.inlet.read() is None  # nothing has come
    lent.theirs.send(framed(b"two"))
    assert lent.inlet.read() == b"two"
    lent.inlet.give_back()
    assert lent.inlet.away  # its bytes are on their way
    assert lent.inlet.read() is None
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (lent.home, lent.backs, lent.inlet.away) == ([framed(b"two")], 1, False)
    lent.close()


@on_loop
async def test_a_frame_that_is_undecided_when_the_loop_wants_the_socket_is_not_lost() -> None:
    lent = Lent()
    lent.theirs.send(framed(b"end"))
    assert lent.inlet.read() == b"end"
    lent.inlet.take_back()
    assert lent.inlet.away
    thread = threading.Thread(target=lent.inlet.give_back)
    thread.start()
    thread.join()
    await asyncio.sleep(0.01)
    assert (lent.home, lent.inlet.away) == ([framed(b"end")], False)
    lent.close()


@on_loop
async def test_when_it_closes_the_socket_is_taken_back_whatever_is_undecided() -> None:
    lent = Lent()
    lent.theirs.send(framed(b"end"))
    assert lent.inlet.read() == b"end"
    lent.inlet.take_back(closing=True)
    assert (lent.home, lent.backs) == ([b""], 1)
    lent.inlet.give_back()
    lent.inlet.take_back()
    assert (lent.home, lent.backs) == ([b""], 1)
    lent.close()


@on_loop
async def test_the_end_of_the_peer_is_the_loops_to_see() -> None:
    lent = Lent()
    lent.theirs.close()
    assert lent.inlet.read() is None
    await asyncio.sleep(0.01)
    assert (lent.home, lent.inlet.away) == ([b""], False)
    lent.close()
