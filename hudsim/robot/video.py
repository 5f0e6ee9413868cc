"""``VideoWriter``: an episode's cameras as an H.264 MP4 that plays in a browser, encoded on a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.loop import Worker
from hudsim.robot.bridge import Array

__all__ = ["VideoWriter"]

# A file cut off by a kill stays readable up to its last second: fragments are written as they are done.
_MUXER = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
_ENCODER = {"preset": "veryfast", "tune": "zerolatency", "crf": "20"}


class VideoWriter:
    """The cameras of a contract side by side, one frame a control tick.

    A tick that the agent was not shown (realtime, when it was slow) repeats the frame before it, so that the
    video keeps the episode's time. Raises :class:`~hudsim.errors.UsageError` without PyAV or without a camera.
    """

    def __init__(self, path: Path, contract: Contract) -> None:
        try:
            import av
        except ImportError:
            raise UsageError("video needs PyAV: pip install 'hudsim[video]'") from None
        self._cameras = [name for name, feature in contract.observations.items() if feature.type in ("rgb", "bgr")]
        if not self._cameras:
            raise UsageError("video: this world shows no rgb or bgr camera; its features are: " + _names(contract))
        self._bgr = {name for name in self._cameras if contract.observations[name].type == "bgr"}
        self._rate = Fraction(contract.control_rate or 30.0).limit_denominator(1000)
        self._container = av.open(str(path), "w", format="mp4", options=_MUXER)
        self._stream: Any = None
        self._frames = 0
        self._worker = Worker("video")
        self._last: Future[None] | None = None

    def add(self, data: Mapping[str, Array], tick: int) -> Future[None]:
        """Queue the frame of observation ``tick``; the arrays must stay as they are until the future is done."""
        self._last = self._worker.submit(self._add, [data[name] for name in self._cameras], tick)
        return self._last

    def close(self) -> int:
        """Write what is left; how many frames the video has."""
        if self._last is not None:
            self._last.result()
        return self._worker.submit(self._close).result()

    def _add(self, images: list[Array], tick: int) -> None:
        import av

        named = zip(self._cameras, images, strict=True)
        picture = _side_by_side([image[..., ::-1] if name in self._bgr else image for name, image in named])
        if self._stream is None:
            self._stream = self._container.add_stream("libx264", rate=self._rate, options=_ENCODER)
            self._stream.height, self._stream.width = picture.shape[:2]
            self._stream.pix_fmt = "yuv420p"
            self._stream.gop_size = max(1, round(self._rate))
            self._stream.thread_count = 1
        while self._frames <= tick:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = self._frames, 1 / self._rate
            self._container.mux(self._stream.encode(frame))
            self._frames += 1

    def _close(self) -> int:
        if self._stream is not None:
            self._container.mux(self._stream.encode())
        self._container.close()
        self._worker.stop()
        return self._frames


def _side_by_side(images: list[Array]) -> Array:
    """One picture [H, W, 3] with even sides (H.264 needs them), cameras left to right, black below the smaller."""
    height = max(image.shape[0] for image in images)
    width = sum(image.shape[1] for image in images)
    picture = np.zeros((height + height % 2, width + width % 2, 3), dtype=np.uint8)
    at = 0
    for image in images:
        picture[: image.shape[0], at : at + image.shape[1]] = image
        at += image.shape[1]
    return picture


def _names(contract: Contract) -> str:
    return ", ".join(contract.observations)
