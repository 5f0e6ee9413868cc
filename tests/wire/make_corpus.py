"""Writes ``corpus/``: frames that the decoder has to live through, one a file.

``python tests/wire/make_corpus.py`` writes them anew. ``valid-*`` are messages, ``refused-*`` are none.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack

CORPUS = Path(__file__).parent / "corpus"


def array(dtype: Any = "<f4", shape: Any = (2,), data: Any = bytes(8), **more: Any) -> bytes:
    """An array as openpi writes it, with any of its parts replaced."""
    body = {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}
    return bytes(msgpack.packb(body | {key.encode(): value for key, value in more.items()}))


def scalar(dtype: Any, data: Any) -> bytes:
    return bytes(msgpack.packb({b"__npgeneric__": True, b"data": data, b"dtype": dtype}))


def without(key: bytes) -> bytes:
    body = {b"__ndarray__": True, b"data": bytes(8), b"dtype": "<f4", b"shape": [2]}
    del body[key]
    return bytes(msgpack.packb(body))


def valid() -> dict[str, bytes]:
    text_keys = {"__ndarray__": True, "data": bytes(8), "dtype": "<f4", "shape": [2]}
    other_order = {b"shape": [2], b"dtype": "<f4", b"data": bytes(8), b"__ndarray__": True}
    return {
        "observation": b"\x83\xa5state" + array() + b"\xaaterminated\xc2\xa6reward\xcb" + struct.pack(">d", 0.5),
        "array-with-text-keys": msgpack.packb(text_keys),
        "array-in-another-order": msgpack.packb(other_order),
        "array-without-axes": array(shape=(), data=bytes(4)),
        "array-empty": array(shape=(0, 3), data=b""),
        "array-of-32-axes": array(shape=(1,) * 31 + (2,)),
        "array-big-endian": array(">f4"),
        "array-not-finite": array(data=struct.pack("<2f", float("nan"), float("inf"))),
        "scalar": scalar("<f4", 0.25),
        "integers": msgpack.packb([0, 127, 128, 1 << 16, 1 << 32, (1 << 64) - 1, -1, -33, -(1 << 15), -(1 << 63)]),
        "long-text": msgpack.packb({"k" * 40: "v" * 300, "é": "日本"}),
        "sixteen-deep": b"\x91" * 15 + b"\x90",
    }


def refused_arrays() -> dict[str, bytes]:
    dtypes = ["|O", "O", "object", "|V8", "V0", "|S8", "<U2", "<M8[ns]", "<m8[s]", "<c8", "<c16", "<f16", "|f4", "=f4"]
    dtypes += ["", "f", "<f4,<f4", "4f4", "(2,)<f4", "<f4\0", "{'names': ['a'], 'formats': ['O']}", "<i3", "<b8", "<f1"]
    odd = [b"<f4", None, 4, True, ["<f4"], {"names": ["a"]}, [["a", "|O"]]]
    shapes = {
        "negative": [-2],
        "two-negative": [-1, -2],
        "huge": [1 << 62],
        "wraps-to-0": [1 << 32, 1 << 32],
        "wraps-to-2": [(1 << 63) + 1, 2],
        "u64": [(1 << 64) - 1],
        "of-empty-and-huge": [0, 1 << 62],
        "of-empty-and-large": [0, 1 << 30],
        "of-33-axes": [1] * 32 + [2],
        "of-5000-huge": [0] + [(1 << 64) - 1] * 5000,
        "bool": [True, 2],
        "float": [2.0],
        "text": ["2"],
        "none": None,
        "an-int": 2,
        "nested": [[2]],
        "a-map": {"0": 2},
        "an-array": {b"__ndarray__": True, b"data": bytes(4), b"dtype": "<i4", b"shape": []},
    }
    return {
        **{f"dtype-{at:02d}": array(dtype, data=bytes(8)) for at, dtype in enumerate([*dtypes, *odd])},
        **{f"shape-{name}": array(shape=shape) for name, shape in shapes.items()},
        "shape-of-empty-and-huge-no-data": array(shape=[0, 1 << 62], data=b""),
        "shape-of-empty-and-large-no-data": array(shape=[0, 1 << 30], data=b""),
        "array-short": array(data=bytes(7)),
        "array-long": array(data=bytes(9)),
        "array-no-data": array(data=b""),
        "array-of-text": array("|u1", shape=(2,), data="ab"),
        "array-of-list": array("|u1", shape=(2,), data=[1, 2]),
        "array-of-none": array(data=None),
        "array-marked-false": array(__ndarray__=False),
        "array-marked-1": array(__ndarray__=1),
        "array-with-more": array(kind="O"),
        "array-both-markers": array(__npgeneric__=True),
        **{f"array-without-{key.decode()}": without(key) for key in (b"data", b"dtype", b"shape", b"__ndarray__")},
        "array-with-data-twice": b"\x85" + array()[1:] + b"\xa4data\xc4\x00",
        "scalar-object": scalar("|O", 140_000_000_000_000),
        "scalar-void": scalar("|V8", bytes(8)),
        "scalar-text": scalar("<f4", "nan"),
        "scalar-bool-as-float": scalar("<f4", True),
        "scalar-int-as-bool": scalar("|b1", 1),
        "scalar-float-as-int": scalar("<i4", 1.5),
        "scalar-too-wide": scalar("|u1", 256),
        "scalar-too-low": scalar("|i1", -129),
        "scalar-too-large": scalar("<f2", 1e300),
        "scalar-of-list": scalar("<f4", [1.0]),
    }


def refused() -> dict[str, bytes]:
    gigabyte = struct.pack(">I", 1 << 30)
    return {
        **refused_arrays(),
        "nothing": b"",
        "no-type": b"\xc1",
        "two-messages": b"\x80\x80",
        "seventeen-deep": b"\x91" * 16 + b"\x90",
        "lists-5000-deep": b"\x91" * 5000,
        "maps-5000-deep": b"\x81\xa1k" * 5000,
        "map-keys-deep": b"\x81" * 5000,
        **{f"claims-1-gb-{code:02x}": bytes((code,)) + gigabyte for code in (0xC6, 0xC9, 0xDB, 0xDD, 0xDF)},
        "claims-1-gb-array": array()[:21] + b"\xc6" + gigabyte + array()[23:],
        "claims-in-claims": b"\xdd\x00\x01\x86\x9f" * 5000,
        "map-claims-in-claims": b"\xdf\x00\x00\xc3\x4f\xa1k" * 5000,
        "key-int": b"\x81\x01\x02",
        "key-none": b"\x81\xc0\x02",
        "key-float": b"\x81\xcb" + bytes(8) + b"\x02",
        "key-list": b"\x81\x90\x02",
        "key-map": b"\x81\x80\x02",
        "key-array": b"\x81" + array() + b"\x02",
        "key-bytes": b"\x81\xc4\x01k\x02",
        "key-marker-alone": b"\x81\xc4\x04data\x02",
        "key-twice": b"\x82\xa1k\x01\xa1k\x02",
        "ext-1": b"\xd4\x05\x00",
        "ext-timestamp": b"\xd6\xff" + bytes(4),
        "ext-8": b"\xc7\x01\x05\x00",
        "ext-in-map": b"\x81\xa1k\xd4\x05\x00",
        "text-not-utf8": b"\xa2\xff\xfe",
        "text-surrogate": b"\xa3\xed\xa0\x80",
        "key-not-utf8": b"\x81\xa1\xff\x01",
        "breaks-off-in-key": b"\x81\xa5ab",
        "breaks-off-after-key": b"\x81\xa1k",
        "breaks-off-in-float": b"\xcb\x00\x00",
        "breaks-off-in-length": b"\xda\x00",
        "breaks-off-in-array": array()[:-1],
        "breaks-off-in-data": array(data=bytes(300), shape=(75,))[:100],
    }


def corpus() -> dict[str, bytes]:
    """File name → its bytes."""
    files = {f"valid-{name}.bin": bytes(data) for name, data in valid().items()}
    return files | {f"refused-{name}.bin": bytes(data) for name, data in refused().items()}


if __name__ == "__main__":
    CORPUS.mkdir(exist_ok=True)
    for old in CORPUS.glob("*.bin"):
        old.unlink()
    for name, data in corpus().items():
        (CORPUS / name).write_bytes(data)
