"""What is sent is what arrives, at the price of a copy."""

from __future__ import annotations

import enum
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis.extra.numpy as hnp
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hudsim.errors import WireError
from hudsim.wire import mirror
from hudsim.wire.codec import DEFAULT, decode, encode

DTYPES = [
    f"{order}{kind}"
    for kind in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
    for order in "<>"
]
KEYS = st.text(max_size=40).filter(lambda key: key not in {"__ndarray__", "__npgeneric__"})
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(KEYS, inner, max_size=20),
    max_leaves=30,
)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """The same values in C order and the machine's byte order, moved one by one."""
    moved = np.empty(array.shape, array.dtype.type)
    for index in np.ndindex(array.shape):
        moved[index] = array[index]
    return moved


def same(got: Any, expected: NDArray[Any]) -> bool:
    """Equal to the bit, NaN's payload included."""
    bits = got.tobytes() == expected.tobytes()
    return type(got) is np.ndarray and got.dtype == expected.dtype and got.shape == expected.shape and bits


@st.composite
def any_arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Of each dtype and byte order, in C and Fortran order, transposed, mirrored, with steps, broadcast, 0-d, empty."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    noise = draw(st.binary(min_size=1, max_size=64))
    if dtype.kind == "b":
        noise = bytes(byte & 1 for byte in noise)
    size = math.prod(shape) * dtype.itemsize
    array: NDArray[Any] = np.frombuffer((noise * (size + 1))[:size], dtype).reshape(shape)
    if draw(st.booleans()):
        array = np.asfortranarray(array)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = draw(st.lists(st.sampled_from([1, 1, -1, 2, -2]), min_size=array.ndim, max_size=array.ndim))
    index: Any = (..., *(slice(None, None, step) for step in steps))  # the dots keep a 0-d array an array
    array = array[index]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (2, *array.shape))
    return array


@given(any_arrays())
def test_an_array_of_any_dtype_order_and_strides_comes_back_to_the_bit(array: NDArray[Any]) -> None:
    frame = encode({"a": array})
    assert same(decode(frame)["a"], native(array))
    assert same(decode(frame, copy=True)["a"], native(array))


@pytest.mark.parametrize("dtype", ["u1", "?", "i2", "f2", ">u2", "f4", "i4", "f8", "u8"])
@pytest.mark.parametrize("tail", [(), (1,), (3,), (4,), (5,)])
@pytest.mark.parametrize("opencv", [True, False])
def test_an_image_mirrored_in_any_axes_comes_back_to_the_bit(
    dtype: str, tail: tuple[int, ...], opencv: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not opencv:
        monkeypatch.setattr(mirror, "_opencv", lambda: None)
    shape = (90, 70, *tail)
    noise = np.random.default_rng(0).integers(0, 256, math.prod(shape) * np.dtype(dtype).itemsize, np.uint8)
    image = (noise & 1 if dtype == "?" else noise).view(dtype).reshape(shape)
    for flips in np.ndindex((2,) * image.ndim):
        mirrored = image[tuple(slice(None, None, -1 if flip else 1) for flip in flips)]
        expected = np.array(mirrored.astype(image.dtype.newbyteorder("=")), order="C")
        for view in (mirrored, mirrored[3:-5, 2:-3], np.broadcast_to(mirrored[:1], mirrored.shape)):
            part = {id(mirrored): expected}.get(id(view), np.array(view.astype(expected.dtype), order="C"))
            assert same(decode(encode(view)), part)


def test_arrays_too_large_for_one_byte_lengths_come_back() -> None:
    for shape in [(255,), (256,), (65_535,), (65_536,), (70_000, 2), (1,) * 32, (300, 0, 2), (1,) * 20]:
        array = np.arange(math.prod(shape), dtype=np.uint8).reshape(shape)
        assert same(decode(encode(array)), array)


@given(PLAIN)
def test_plain_values_are_written_as_msgpack_writes_them_and_come_back(value: Any) -> None:
    frame = encode(value)
    assert frame == msgpack.packb(value)
    back = decode(frame)
    assert msgpack.packb(back) == frame  # equal, and NaN too
    assert type(back) is type(value)


@pytest.mark.parametrize("size", [15, 16, 31, 32, 255, 256, 65_535, 65_536])
def test_lengths_at_each_edge_of_the_format_come_back(size: int) -> None:
    message: dict[str, Any] = {"text": "x" * size, "bytes": bytes(size), "list": [0] * min(size, 40_000)}
    message |= {f"{at}": at for at in range(min(size, 5_000))} | {"k" * size: 1}
    assert encode(message) == msgpack.packb(message)
    assert decode(encode(message)) == message


def test_what_is_equal_to_a_plain_value_is_sent_as_one() -> None:
    class Word(enum.StrEnum):
        HOLD = "hold"

    class Code(enum.IntEnum):
        SEVEN = 7

    sent = [
        (1, 2),
        Word.HOLD,
        Code.SEVEN,
        np.float64(0.5),
        np.str_("é"),
        np.bytes_(b"b"),
        bytearray(b"b"),
        memoryview(b"b"),
    ]
    assert decode(encode(sent)) == [[1, 2], "hold", 7, 0.5, "é", b"b", b"b", b"b"]


@pytest.mark.parametrize("kind", ["bool_", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float32"])
def test_a_numpy_scalar_comes_back_with_its_type(kind: str) -> None:
    dtype = np.dtype(getattr(np, kind))
    for value in [
        0,
        1,
        *([] if dtype.kind == "b" else [np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max]),
    ]:
        back = decode(encode(dtype.type(value)))
        assert type(back) is dtype.type
        assert back == dtype.type(value)


def test_scalars_that_are_not_finite_come_back() -> None:
    back = decode(encode([np.float32("nan"), np.float32("inf"), -math.inf]))
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, -math.inf]


# Written by openpi_client.msgpack_numpy.packb of openpi-client 0.1.2, with msgpack 1.2.4 and numpy 2.4.6.
OPENPI: list[tuple[str, Any]] = [
    (
        (
            "83b16f62736572766174696f6e2f737461746584c40b5f5f6e6461727261795f5fc3c40464617461c40c000000000000003f0000803f"
            "c4056474797065a33c6634c40573686170659103aa7465726d696e61746564c2a6726577617264cbbfe0000000000000"
        ),
        {"observation/state": np.arange(3, dtype=np.float32) / 2, "terminated": False, "reward": -0.5},
    ),
    (
        (
            "84c40b5f5f6e6461727261795f5fc3c40464617461c40c000102030405060708090a0bc4056474797065a37c7531c40573686170659302"
            "0203"
        ),
        np.arange(12, dtype=np.uint8).reshape(2, 2, 3),
    ),
    (
        "84c40b5f5f6e6461727261795f5fc3c40464617461c4080700000000000000c4056474797065a33c6938c405736861706590",
        np.array(7, np.int64),
    ),
    (
        "84c40b5f5f6e6461727261795f5fc3c40464617461c400c4056474797065a33c6632c4057368617065920004",
        np.zeros((0, 4), np.float16),
    ),
    (
        "84c40b5f5f6e6461727261795f5fc3c40464617461c4020100c4056474797065a37c6231c4057368617065920102",
        np.array([[True, False]]),
    ),
    (
        "84c40b5f5f6e6461727261795f5fc3c40464617461c4080000010002000300c4056474797065a33c7532c4057368617065920202",
        np.asfortranarray(np.arange(4, dtype=np.uint16).reshape(2, 2)),
    ),
    ("83c40d5f5f6e7067656e657269635f5fc3c40464617461cb3fd0000000000000c4056474797065a33c6634", np.float32(0.25)),
    ("83c40d5f5f6e7067656e657269635f5fc3c40464617461c3c4056474797065a37c6231", np.bool_(True)),
    ("cb3fd0000000000000", np.float64(0.25)),
]


@pytest.mark.parametrize(("written", "message"), OPENPI)
def test_frames_are_openpis_to_the_byte(written: str, message: Any) -> None:
    assert encode(message).hex() == written
    assert encode(decode(bytes.fromhex(written))).hex() == written


def test_an_array_that_openpi_sent_big_endian_arrives_native() -> None:
    frame = "84c40b5f5f6e6461727261795f5fc3c40464617461c40800000001fffffffec4056474797065a33e6934c40573686170659102"
    assert same(decode(bytes.fromhex(frame)), np.array([1, -2], np.int32))


def test_arrays_are_read_only_views_into_the_frame() -> None:
    frame = encode({"image": np.ones((64, 64, 3), np.uint8), "state": np.ones(8, np.float32)})
    message = decode(frame)
    assert not any(array.flags.writeable for array in message.values())
    assert np.shares_memory(message["image"], np.frombuffer(frame, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        message["image"][0] = 0


def test_arrays_are_aligned_wherever_they_stand() -> None:
    for shift in range(9):
        state = decode(encode({"k" * shift: np.ones(8, np.float64)}))["k" * shift]
        assert state.flags.aligned
        assert not state.flags.writeable


def test_copies_are_writable_and_own_their_memory() -> None:
    frame = encode([np.ones(4, dtype) for dtype in ("u1", "f8", ">f4")])
    for array in decode(frame, copy=True):
        array[:] = 5
        assert array.flags.owndata
    assert decode(frame)[0].tolist() == [1, 1, 1, 1]


def test_a_message_in_a_buffer_that_is_written_to_again_stays_as_it_was() -> None:
    buffer = bytearray(encode(np.ones(4, np.uint8)))
    arrays = [decode(buffer), decode(memoryview(buffer))]
    buffer[:] = bytes(len(buffer))
    buffer.clear()
    assert [array.tolist() for array in arrays] == [[1, 1, 1, 1]] * 2


@pytest.mark.parametrize(
    ("message", "place", "got"),
    [
        ({"a": {"b": [0, np.array([None])]}}, "message['a']['b'][1]", "dtype object"),
        ({"a": np.array(["x"])}, "message['a']", "dtype <U1"),
        ({"a": np.array([b"x"])}, "message['a']", "dtype |S1"),
        ({"a": np.zeros(1, "V4")}, "message['a']", "dtype |V4"),
        ({"a": np.zeros(1, "f4,f4")}, "message['a']", "dtype [('f0'"),
        ({"a": np.zeros(1, "M8[s]")}, "message['a']", "dtype datetime64"),
        ({"a": np.zeros(1, np.complex64)}, "message['a']", "dtype complex64"),
        ({"a": np.ma.masked_array([1.0], [True])}, "message['a']", "got MaskedArray"),
        ({"a": np.complex128(1)}, "message['a']", "got complex128"),
        ({"a": np.datetime64(1, "s")}, "message['a']", "got datetime64"),
        ({"a": 1 + 2j}, "message['a']", "got complex"),
        ({"a": {1, 2}}, "message['a']", "got set"),
        ({"a": object()}, "message['a']", "got object"),
        ({"a": 1 << 64}, "message['a']", "got an int of 65 bits"),
        ({"a": -(1 << 63) - 1}, "message['a']", "got an int below"),
        ({"a": "\ud800"}, "message['a']", "got '\\ud800'"),
        ({"a": {1: 2}}, "message['a'][1]", "got a key of type int"),
        ({b"a": 1}, "message[b'a']", "got a key of type bytes"),
        ({"__ndarray__": True}, "message['__ndarray__']", "kept for numpy arrays"),
        ([0] * (DEFAULT.max_items + 1), "message", "got 100001 items"),
        (np.broadcast_to(np.uint8(0), (1 << 32,)), "message", "got 4294967296 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_carried_is_refused_by_its_place(message: Any, place: str, got: str) -> None:
    with pytest.raises(WireError) as caught:
        encode(message)
    assert str(caught.value).startswith(f"cannot send {place}: ")
    assert got in str(caught.value)
    assert caught.value.data == {"place": place}


def test_depth_is_bounded_alike_at_both_ends() -> None:
    message: Any = []
    for _ in range(DEFAULT.max_depth - 1):
        message = [message]
    assert decode(encode(message)) == message
    message.append(message)
    with pytest.raises(WireError, match="got lists and dicts 17 deep, expected at most 16"):
        encode(message)


def test_threads_that_encode_at_once_do_not_share_memory() -> None:
    images = [np.full((64, 64, 3), at, np.uint8)[:, ::-1] for at in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            frames = list(threads.map(encode, images))
            assert [int(decode(frame).min()) for frame in frames] == list(range(8))
            assert [int(decode(frame).max()) for frame in frames] == list(range(8))


def seconds(frame: dict[str, Any]) -> float:
    started = time.perf_counter()
    for _ in range(5):
        encode(frame)
    return time.perf_counter() - started


@pytest.mark.parametrize("flip", ["rows", "columns", "both", "channels"])
def test_a_mirrored_image_costs_less_than_three_times_a_plain_one(flip: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (480, 480, 3), np.uint8)
    views = {"rows": image[::-1], "columns": image[:, ::-1], "both": image[::-1, ::-1], "channels": image[..., ::-1]}
    plain, mirrored = {"image": image}, {"image": views[flip]}
    encode(mirrored)
    # Alternating, the best of many: what else the machine does only ever adds.
    times = [(seconds(plain), seconds(mirrored)) for _ in range(60)]
    assert min(slow for _, slow in times) < 3 * min(quick for quick, _ in times)
