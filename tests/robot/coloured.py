"""A test card in any order of channels, whose cameras may be encoded. Loaded by path, as the worlds beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hudsim.bridges.testcard import TestCardVectorBridge, read_card
from hudsim.contract import Contract
from hudsim.robot.bridge import Array, Observation
from hudsim.robot.spec import WorldSpec

__all__ = ["CAMERA", "Coloured", "coloured", "in_rgb", "read_encoded"]

CAMERA = "observation/camera0"
_GRAY = np.array([0.299, 0.587, 0.114])


class Coloured(TestCardVectorBridge):
    """A test card that shows its cameras as ``order`` (``rgb``, ``bgr`` or ``gray``), encoded as ``encoding`` says."""

    def __init__(
        self,
        *,
        num_envs: int = 1,
        order: str = "rgb",
        encoding: str = "jpeg:90",
        timing: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(num_envs=num_envs, **{"width": 128, "height": 128, "cameras": 1, "state": 5, **options})
        self._order = order
        document = self.contract.to_json()
        document["timing"] = {**document["timing"], **(timing or {})}
        for name, feature in document["features"].items():
            if feature.get("type") == "rgb":
                shape = [*feature["shape"][:2], 1 if order == "gray" else 3]
                document["features"][name] = {**feature, "type": order, "shape": shape, "encoding": encoding}
        self.contract = Contract.load(document)

    def get_observation(self) -> Observation:
        seen = super().get_observation()
        return replace(seen, data={n: self._ordered(a) if a.ndim == 4 else a for n, a in seen.data.items()})

    def _ordered(self, images: Array) -> Array:
        if self._order == "gray":
            return np.asarray((images @ _GRAY).round().astype(np.uint8)[..., None])
        return images if self._order == "rgb" else images[..., ::-1]


def coloured(**options: Any) -> WorldSpec:
    """:class:`Coloured` by this file's path."""
    return WorldSpec(f"{Path(__file__).resolve()}:Coloured", options)


def in_rgb(image: Array, order: str) -> Array:
    """A coloured card as RGB."""
    return image[..., ::-1] if order == "bgr" else image


def read_encoded(image: Array, order: str = "rgb") -> tuple[int, int]:
    """(slot, tick) of a card that lost detail on its way: what is read of it is 0 or 255 in each channel.

    Raises as :func:`~hudsim.bridges.testcard.read_card` for one that is flipped, in another order, or torn.
    """
    plain = np.where(in_rgb(image, order) > 127, 255, 0).astype(np.uint8)
    return read_card(plain)
