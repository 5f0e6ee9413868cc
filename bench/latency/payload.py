"""``Payload``: what an observation holds, as a file that every system's world reads, whatever its interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONTENTS", "PAYLOADS", "Payload"]

_STATE = 8  # float32
_BLUR = 32  # pixels over which a picture's colours change
_NOISE = 2.0  # standard deviation, of 256 levels
_BANDS = 24  # levels in one shade

CONTENTS = ("camera", "render")
"""``camera``: smooth colours under a sensor's noise, of which deflate leaves 96%. ``render``: the same colours in flat
shades, of which it leaves 9%, as of a frame of `arm-lift`. Who does not compress does not notice."""


@dataclass(frozen=True)
class Payload:
    """``cameras`` pictures of height × width RGB and a state of 8 float32, of each of ``slots`` worlds at once."""

    cameras: int = 0
    height: int = 0
    width: int = 0
    slots: int = 1

    @property
    def image_bytes(self) -> int:
        """Of all pictures of a tick."""
        return self.slots * self.cameras * self.height * self.width * 3

    def write(self, file: Path, content: str) -> dict[str, Any]:
        """The request that :mod:`~hudsim.bench.latency.systems.play` opens a system with; the arrays are in ``file``.

        The file holds ``state`` [8] and ``camera0``, … [height, width, 3], of one world, whose ``content`` is one of
        CONTENTS.
        """
        rng = np.random.default_rng(0)
        arrays: dict[str, Any] = {"state": np.zeros(_STATE, np.float32)}
        arrays |= {f"camera{i}": _picture(rng, self.height, self.width, content) for i in range(self.cameras)}
        np.savez(file, **arrays)
        nbytes = sum(array.nbytes for array in arrays.values())
        return {"file": str(file), "slots": self.slots, "bytes": nbytes}


PAYLOADS = {
    "state": Payload(),
    "2x224": Payload(2, 224, 224),
    "2x480": Payload(2, 480, 480),
    "4x640x480": Payload(4, 480, 640),
    "8x2x224": Payload(2, 224, 224, slots=8),
}


def _picture(rng: np.random.Generator, height: int, width: int, content: str) -> NDArray[np.uint8]:
    import cv2

    coarse = rng.integers(30, 225, (height // _BLUR + 2, width // _BLUR + 2, 3)).astype(np.float32)
    smooth = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    noisy = smooth + rng.normal(0, _NOISE, smooth.shape)
    shades = noisy if content == "camera" else smooth // _BANDS * _BANDS
    return np.clip(shades, 0, 255).astype(np.uint8)
