"""JPEG in place of an image's array. What arrives is not trusted: its header is read before any pixel is made."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from hudsim.errors import DecodeError, WireError
from hudsim.wire.format import DEFAULT, Array

__all__ = ["decode_jpeg", "encode_jpeg"]

_BEGIN, _END = b"\xff\xd8\xff", b"\xff\xd9"
_BASELINE, _SCAN = 0xC0, 0xDA
_PLAIN = {0xC4, 0xDB, 0xDD, 0xE0, 0xEE, 0xFE}  # tables, restart interval, JFIF, Adobe, comment; no EXIF to be parsed
_OVERHEAD = 64 << 10  # bytes that tables and comments may take


def encode_jpeg(image: Array, order: str, quality: int) -> bytes:
    """``image`` uint8 [H, W, 3] (``order`` ``rgb`` or ``bgr``), [H, W, 1] or [H, W] (``gray``) as a JPEG of ``quality``
    1 … 100: baseline, one scan, in the colours that any viewer shows. Any strides. Raises :class:`WireError`.
    """
    import cv2

    pixels: Any = np.ascontiguousarray(image)
    try:
        if order == "rgb":
            pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
        done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    except cv2.error as error:
        raise WireError(f"an image of {image.dtype}{list(image.shape)} cannot be encoded: {error}") from None
    if not done:
        raise WireError(f"an image of {image.dtype}{list(image.shape)} cannot be encoded")
    return data.tobytes()


def decode_jpeg(data: Any, order: str, shape: Sequence[int]) -> Array:
    """The image in ``data``, which must be of ``shape`` [H, W, C] or [H, W]: uint8, channels in ``order``, read-only.

    Raises :class:`DecodeError` for anything but one JPEG as :func:`encode_jpeg` makes them, of just that shape: what
    it would take in memory and time is known from its header. In a scan whose bits are damaged nothing shows it.
    """
    import cv2

    _expect(data, shape)
    flags = cv2.IMREAD_GRAYSCALE if order == "gray" else cv2.IMREAD_COLOR
    try:
        pixels: Any = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise DecodeError(f"got a JPEG that cannot be read: {error}") from None
    if pixels is None or pixels.size != np.prod(shape):
        raise DecodeError(f"got a JPEG of {len(data)} bytes that cannot be read")
    if order == "rgb":
        pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
    image: Array = pixels.reshape(shape)
    image.flags.writeable = False
    return image


def _expect(data: Any, shape: Sequence[int]) -> None:
    """See that ``data`` is a JPEG of ``shape``, as far as its header tells."""
    channels = shape[2] if len(shape) == 3 else 1
    expected = f"a baseline JPEG of {shape[1]}×{shape[0]} pixels and {channels} colour components, in one scan"
    if not isinstance(data, bytes):
        raise DecodeError(f"got {type(data).__name__}, expected {expected}")
    size = shape[0] * shape[1] * channels
    if size > DEFAULT.max_bytes:
        raise DecodeError(f"got a JPEG for {size} bytes of pixels, expected at most {DEFAULT.max_bytes}")
    if not (data.startswith(_BEGIN) and data.endswith(_END)) or len(data) > 2 * size + _OVERHEAD:
        raise DecodeError(f"got {len(data)} bytes that begin with {data[:8]!r}, expected {expected}")
    try:
        got = _header(data)
    except (IndexError, struct.error):
        raise DecodeError(f"got a JPEG that breaks off after {len(data)} bytes, expected {expected}") from None
    if got != (8, shape[0], shape[1], channels, channels):
        raise DecodeError(f"got a JPEG of (bits, height, width, components, in one scan) {got}, expected {expected}")


def _header(data: bytes) -> tuple[int, ...]:
    """Bits a sample, height, width, components, and how many of them the first scan has (ITU-T T.81, annex B).

    Progressive frames and several scans are refused: a few bytes of them can ask for minutes of work.
    """
    at, frame = 2, None
    while True:
        mark, kind, length = struct.unpack_from(">BBH", data, at)
        if mark != 0xFF or length < 2:
            raise DecodeError(f"got a JPEG without a segment at byte {at}")
        if kind == _SCAN and frame is not None:
            return (*frame, data[at + 4])
        if kind == _BASELINE and frame is None:
            frame = struct.unpack_from(">BHHB", data, at + 4)
        elif kind not in _PLAIN:
            raise DecodeError(f"got a JPEG with a segment 0xff{kind:02x} at byte {at}, expected a baseline frame")
        at += 2 + length
