"""The decoder against frames that nobody should send."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import DecodeError
from hudsim.wire.codec import Limits, decode, encode
from tests.wire.make_corpus import CORPUS, corpus

# Decodes each file of a folder, and some frames too large to keep, and says on stdout what came of each:
# {name: [outcome, bytes of the frame, peak of the memory taken]}. An address space of 1 GiB more than at the start
# makes a runaway allocation fail instead of filling the machine.
DECODE_ALL = """
import json, resource, struct, sys, tracemalloc
from pathlib import Path
from hudsim.errors import DecodeError
from hudsim.wire.codec import decode

used = 4096 * int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else None
if used is not None:
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
frames = {path.name: path.read_bytes() for path in sorted(Path(sys.argv[1]).iterdir())}
frames["refused-nested-claims"] = b"\\xdd\\x00\\x01\\x86\\x9f" * 500_000
frames["refused-many-items"] = b"\\xdd\\x00\\x01\\x86\\xa1" + b"\\x80" * 100_001
frames["refused-many-in-many"] = b"\\xdc\\x01\\x00" + (b"\\xdc\\x04\\x00" + b"\\x80" * 1024) * 256
keys = (b"\\xa5%05d\\x80" % key for key in range(65535))
frames["refused-many-keys"] = b"\\xde\\xff\\xff" + b"".join(keys)
frames["refused-long-text"] = b"\\xdb" + struct.pack(">I", 4 << 20) + b"\\xff" * (4 << 20)
frames["refused-long-key"] = b"\\x81\\xdb" + struct.pack(">I", 4 << 20) + b"k" * (4 << 20)
frames["refused-over-64-mib"] = bytes((64 << 20) + 1)
frames["valid-long-bytes"] = b"\\xc6" + struct.pack(">I", 4 << 20) + bytes(4 << 20)
frames["valid-empty-maps"] = b"\\xdd\\x00\\x01\\x86\\xa0" + b"\\x80" * 100_000
seen = {}
tracemalloc.start()
for name, frame in frames.items():
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        decode(frame)
        outcome = "valid"
    except DecodeError as error:
        outcome = "refused" if len(str(error)) < 400 else "a message too long"
    seen[name] = [outcome, len(frame), tracemalloc.get_traced_memory()[1] - before]
json.dump(seen, sys.stdout)
"""


@pytest.fixture(scope="module")
def seen() -> dict[str, list[Any]]:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", DECODE_ALL, str(CORPUS)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, list[Any]] = json.loads(done.stdout)
    return answer


def test_the_corpus_is_what_its_script_makes() -> None:
    assert {path.name: path.read_bytes() for path in CORPUS.iterdir()} == corpus()


def test_each_frame_of_the_corpus_is_decoded_or_refused_as_its_name_says(seen: dict[str, list[Any]]) -> None:
    assert len(seen) > 100
    assert {name: outcome for name, (outcome, _, _) in seen.items() if not name.startswith(outcome)} == {}


def test_no_frame_takes_memory_beyond_a_few_times_its_size(seen: dict[str, list[Any]]) -> None:
    # The constant is what 100,000 items may take: an empty map is 1 byte on the wire and 64 in memory.
    assert {name: row for name, row in seen.items() if row[2] > 4 * row[1] + (16 << 20)} == {}
    # ... and of small frames nearly all must be far below it.
    assert {name: row for name, row in seen.items() if row[1] < 1000 and row[2] > 100_000} == {}


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        decode(data)


FRAMES = [
    *(path.read_bytes() for path in sorted(CORPUS.iterdir()) if path.stat().st_size < 2000),
    encode(
        {"image": np.zeros((8, 8, 3), np.uint8), "state": np.zeros(5, np.float32), "meta": {"n": 1 << 40, "s": "x"}}
    ),
]


@given(st.sampled_from(FRAMES), st.data())
def test_a_frame_with_bytes_changed_dropped_or_added_is_decoded_or_refused(frame: bytes, data: st.DataObject) -> None:
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        match data.draw(st.sampled_from(["change", "drop", "add"])):
            case "change" if at < len(changed):
                changed[at] = data.draw(st.integers(0, 255))
            case "drop":
                del changed[at : at + data.draw(st.integers(1, 8))]
            case _:
                changed[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    try:
        message = decode(bytes(changed))
    except DecodeError:
        return
    again = encode(message)  # what comes out may go in
    assert encode(decode(again)) == again


def test_a_frame_cut_anywhere_is_refused() -> None:
    frame = FRAMES[-1]
    for end in range(len(frame)):
        with pytest.raises(DecodeError):
            decode(frame[:end])


def test_bytes_after_the_message_are_refused() -> None:
    with pytest.raises(DecodeError, match="got 1 bytes after the message, expected none"):
        decode(encode({"a": 1}) + b"\0")


def test_limits_can_be_set() -> None:
    message = {"a": [1, [2]]}
    frame = encode(message)
    assert decode(frame, limits=Limits(max_bytes=len(frame), max_depth=3, max_items=5)) == message
    with pytest.raises(DecodeError, match=rf"got a message of {len(frame)} bytes, expected at most 5"):
        decode(frame, limits=Limits(max_bytes=5))
    with pytest.raises(DecodeError, match="3 deep, expected at most 2"):
        decode(frame, limits=Limits(max_depth=2))
    with pytest.raises(DecodeError, match="more items than 4"):
        decode(frame, limits=Limits(max_items=4))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refused-dtype-00", "got dtype '|O', expected bool, int, uint or float"),
        ("refused-shape-huge", "got an array of 8 bytes, expected float32 of shape [4611686018427387904]"),
        ("refused-shape-negative", "got shape [-2], expected at most 32 non-negative integers"),
        ("refused-key-int", "got a map key of the msgpack type 0x01, expected str"),
        ("refused-ext-1", "got the msgpack type 0xd4, expected plain data and arrays"),
        ("refused-breaks-off-in-key", "got a message that breaks off after 4 bytes"),
        ("refused-scalar-too-wide", "got 256, expected a scalar of uint8"),
    ],
)
def test_a_refusal_says_what_was_got_and_what_was_expected(name: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode((CORPUS / f"{name}.bin").read_bytes())
    assert message in str(caught.value)
    assert caught.value.code == 4400


@pytest.mark.parametrize("data", ["text", 5, None, [1]])
def test_what_is_not_bytes_is_refused(data: Any) -> None:
    with pytest.raises(DecodeError, match="expected bytes"):
        decode(data)
