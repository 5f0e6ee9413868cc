"""Images as JPEG: what comes back is the picture that went in, and what is no such JPEG costs nothing."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hudsim.errors import DecodeError, WireError
from hudsim.wire.jpeg import decode_jpeg, encode_jpeg

HEIGHT, WIDTH = 48, 64
CORNERS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
_NEAR = 12


def card() -> Any:
    """RGB [H, W, 3]: red, green, blue and white in reading order, and some grain."""
    image = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    halves = [np.s_[:24, :32], np.s_[:24, 32:], np.s_[24:, :32], np.s_[24:, 32:]]
    for place, colour in zip(halves, CORNERS.values(), strict=True):
        image[place] = colour
    return image


def gray(image: Any) -> Any:
    return (image @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)[..., None]


IMAGES = {"rgb": card(), "bgr": card()[..., ::-1], "gray": gray(card())}


@pytest.mark.parametrize("order", list(IMAGES))
def test_corners_come_back_where_and_in_the_colours_that_they_were(order: str) -> None:
    image = IMAGES[order]
    back = decode_jpeg(encode_jpeg(image, order, 90), order, image.shape)
    assert back.shape == image.shape
    assert back.dtype == np.uint8
    assert not back.flags.writeable
    for row, column in ((4, 4), (4, -4), (-4, 4), (-4, -4)):
        np.testing.assert_allclose(back[row, column].astype(int), image[row, column], atol=_NEAR)


@pytest.mark.parametrize("order", list(IMAGES))
def test_any_viewer_shows_the_picture_as_it_is(order: str) -> None:
    """The file itself is in the usual colours, whatever the order of the array's channels."""
    with Image.open(io.BytesIO(encode_jpeg(IMAGES[order], order, 95))) as shown:
        assert shown.mode == ("L" if order == "gray" else "RGB")
        pixels = np.asarray(shown)
    expected = IMAGES["gray"][..., 0] if order == "gray" else IMAGES["rgb"]
    np.testing.assert_allclose(pixels[4::40, 4::56].astype(int), expected[4::40, 4::56], atol=_NEAR)


@pytest.mark.parametrize("order", list(IMAGES))
def test_flipped_and_strided_images_are_the_same_as_their_copies(order: str) -> None:
    for view in (IMAGES[order][::-1], IMAGES[order][:, ::-1], IMAGES[order][::2, ::2]):
        assert encode_jpeg(view, order, 75) == encode_jpeg(view.copy(), order, 75)


def test_a_gray_image_of_two_axes_keeps_two() -> None:
    image = IMAGES["gray"][..., 0]
    assert decode_jpeg(encode_jpeg(image, "gray", 90), "gray", image.shape).shape == (HEIGHT, WIDTH)


def test_better_quality_is_more_bytes_and_less_difference() -> None:
    rng = np.random.default_rng(0)
    image = np.repeat(np.repeat(rng.integers(0, 256, (15, 20, 3), np.uint8), 8, 0), 8, 1)
    made = {quality: encode_jpeg(image, "rgb", quality) for quality in (10, 50, 75, 90, 100)}
    off = [np.abs(decode_jpeg(data, "rgb", image.shape).astype(int) - image).mean() for data in made.values()]
    sizes = [len(data) for data in made.values()]
    assert sizes == sorted(set(sizes))
    assert off == sorted(set(off), reverse=True)


@pytest.mark.parametrize(
    ("image", "order"),
    [
        (np.zeros((8, 8, 3), np.float64), "rgb"),
        (np.zeros((8, 8, 5), np.uint8), "bgr"),
        (np.zeros((0, 8, 3), np.uint8), "bgr"),
        (np.zeros((8, 8, 2), np.uint8), "rgb"),
    ],
)
def test_what_cannot_be_encoded_is_an_error_that_says_what_it_was(image: Any, order: str) -> None:
    with pytest.raises(WireError, match=rf"{image.dtype}\["):
        encode_jpeg(image, order, 90)


# What is not trusted ---------------------------------------------------------------------------------------------


def by_pillow(image: Any = IMAGES["rgb"], **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, options.pop("format", "JPEG"), **options)
    return file.getvalue()


def resized(data: bytes, height: int, width: int) -> bytes:
    """The same file with another size in its header."""
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


GOOD = encode_jpeg(IMAGES["rgb"], "rgb", 90)
SHAPE = IMAGES["rgb"].shape
_SCAN = GOOD.index(b"\xff\xda")
BAD: dict[str, Any] = {
    "nothing": b"",
    "an array": IMAGES["rgb"],
    "text": "jpeg",
    "no picture": b"\x00" * 1000,
    "only begin and end": b"\xff\xd8\xff\xd9",
    "a begin, garbage and an end": b"\xff\xd8\xff" + bytes(range(250)) * 4 + b"\xff\xd9",
    "a png": by_pillow(format="PNG"),
    "a bomb": resized(GOOD, 65535, 65535),
    "a little bomb": resized(GOOD, 4096, 4096),
    "height and width swapped": resized(GOOD, WIDTH, HEIGHT),
    "no height": resized(GOOD, 0, WIDTH),
    "gray": encode_jpeg(IMAGES["gray"], "gray", 90),
    "progressive": by_pillow(progressive=True),
    "two frames": GOOD[:_SCAN] + GOOD[GOOD.index(b"\xff\xc0") : _SCAN] + GOOD[_SCAN:],
    "a scan of one component": GOOD[: _SCAN + 4] + b"\x01" + GOOD[_SCAN + 5 :],
    "a scan before its frame": GOOD[:2] + GOOD[_SCAN:],
    "a segment without a length": GOOD[:4] + b"\x00\x00" + GOOD[6:],
    "a segment beyond the end": GOOD[:4] + b"\xff\xff" + GOOD[6:],
    "an EXIF segment": GOOD[:2] + b"\xff\xe1\x00\x08Exif\x00\x00" + GOOD[2:],
    "cut off": GOOD[:-40],
    "cut off in its header": GOOD[:30] + b"\xff\xd9",
    "megabytes of comment": GOOD[:2] + b"\xff\xfe\xff\xff".ljust(65537, b"x") * 3 + GOOD[2:],
}


@pytest.mark.parametrize("name", list(BAD))
def test_anything_but_the_jpeg_expected_is_a_typed_error(name: str) -> None:
    with pytest.raises(DecodeError, match=r"^got .*"):
        decode_jpeg(BAD[name], "rgb", SHAPE)


def test_the_error_says_what_was_got_and_expected() -> None:
    with pytest.raises(DecodeError, match=r"\(8, 65535, 65535, 3, 3\), expected a baseline JPEG of 64×48 pixels and 3"):
        decode_jpeg(BAD["a bomb"], "rgb", SHAPE)


def test_what_a_contract_asks_for_has_an_end_too() -> None:
    with pytest.raises(DecodeError, match="expected at most 67108864"):
        decode_jpeg(resized(GOOD, 65000, 65000), "rgb", (65000, 65000, 3))


def test_a_jpeg_of_another_maker_is_read_if_it_is_a_plain_one() -> None:
    for options in ({}, {"subsampling": 0}, {"optimize": True}, {"comment": "of a camera"}):
        back = decode_jpeg(by_pillow(quality=95, **options), "rgb", SHAPE)
        np.testing.assert_allclose(back[4::40, 4::56].astype(int), IMAGES["rgb"][4::40, 4::56], atol=_NEAR)


@given(st.data())
def test_bytes_changed_at_random_give_a_picture_of_the_shape_or_a_typed_error(data: Any) -> None:
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(GOOD) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = decode_jpeg(bytes(changed), "rgb", SHAPE)
    except DecodeError:
        return
    assert image.shape == SHAPE


_BOMBS = """
import resource, struct, sys
import cv2
from hudsim.errors import DecodeError
from hudsim.wire.jpeg import decode_jpeg
good = bytes.fromhex(sys.stdin.read())
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
at = good.index(b"\\xff\\xc0") + 5
for height, width in ((65535, 65535), (20000, 20000), (1, 65535)):
    bomb = good[:at] + struct.pack(">HH", height, width) + good[at + 4 :]
    try:
        decode_jpeg(bomb, "rgb", (48, 64, 3))
    except DecodeError:
        print("refused")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_a_bomb_is_refused_before_its_pixels_take_memory() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", _BOMBS], input=GOOD.hex(), capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    *refused, grown_mib = run.stdout.split()
    assert refused == ["refused"] * 3
    assert int(grown_mib) < 64
