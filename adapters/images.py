"""``Images``: cameras as a policy was trained to see them: its size, its channel order, its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cv2
import numpy as np

from hudsim.contract import Contract
from hudsim.errors import ContractError, UsageError
from hudsim.robot.adapter import Adapter
from hudsim.robot.bridge import Array

__all__ = ["Fit", "Images", "Range", "fit"]

Fit = Literal["pad", "stretch", "crop"]
Range = Literal["uint8", "unit", "signed"]


def fit(image: Array, width: int, height: int, how: Fit = "pad", interpolation: int | None = None) -> Array:
    """``image`` [H, W] or [H, W, C] at another size, of the same dtype; the same array if it has that size.

    ``stretch`` changes the aspect ratio. ``pad`` and ``crop`` keep it: the whole image centred on black, or its
    centre without what does not fit. Shrinks by area and enlarges linearly unless ``interpolation`` (OpenCV's) says.
    """
    h, w = image.shape[:2]
    if (h, w) == (height, width):
        return image
    scale = {"pad": min, "crop": max}.get(how)
    if scale is None:
        rows, columns = height, width
    else:
        factor = scale(height / h, width / w)
        rows, columns = max(1, round(h * factor)), max(1, round(w * factor))
    if interpolation is None:
        interpolation = cv2.INTER_AREA if rows * columns < h * w else cv2.INTER_LINEAR
    resized: Array = cv2.resize(image, (columns, rows), interpolation=interpolation)
    resized = resized.reshape(rows, columns, *image.shape[2:])  # OpenCV drops a last axis of 1
    if scale is None:
        return resized
    top, left = abs(height - rows) // 2, abs(width - columns) // 2
    if how == "crop":
        return resized[top : top + height, left : left + width]
    padded = np.zeros((height, width, *image.shape[2:]), image.dtype)
    padded[top : top + rows, left : left + columns] = resized
    return padded


class Images(Adapter):
    """Brings every ``rgb`` and ``bgr`` feature to one size, order and range, ``gray`` and ``depth`` to the size only.

    width, height
        In pixels. None: as the world has it.
    how
        See :func:`fit`.
    order
        Channel order of what comes out, whichever the world's is.
    value_range
        ``uint8`` as it is, ``unit`` float32 in [0, 1], ``signed`` float32 in [-1, 1].
    mean, std
        By channel, in units of ``value_range`` (not ``uint8``): the result is (value - mean) / std, float32.
    layout
        ``hwc`` or ``chw``.
    then
        The adapter that gets the images so prepared, and does the rest. None: all else passes through.
    """

    def __init__(
        self,
        *,
        width: int | None = None,
        height: int | None = None,
        how: Fit = "pad",
        order: Literal["rgb", "bgr"] = "rgb",
        value_range: Range = "uint8",
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        layout: Literal["hwc", "chw"] = "hwc",
        then: Adapter | None = None,
        privileged: bool = False,
    ) -> None:
        super().__init__(privileged=privileged)
        if any(size is not None and size < 1 for size in (width, height)) or how not in ("pad", "stretch", "crop"):
            raise UsageError(f"{width}x{height} by {how!r}; expected at least 1x1 by pad, stretch or crop")
        if (mean is not None or std is not None) and value_range == "uint8":
            raise UsageError("mean and std need value_range 'unit' or 'signed', got 'uint8'")
        if any(len(three) != 3 for three in (mean, std) if three is not None):
            raise UsageError(f"mean {mean}, std {std}; expected three numbers each")
        self._width, self._height, self._how, self._order = width, height, how, order
        self._range, self._layout = value_range, layout
        self._mean = np.asarray(mean if mean is not None else (0, 0, 0), np.float32)
        self._std = np.asarray(std if std is not None else (1, 1, 1), np.float32)
        self._then = then if then is not None else Adapter(privileged=privileged)
        self._images: dict[str, str] = {}

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        super().bind(contract, params)
        self._then.bind(contract, params)
        self._images = {name: feature.type or "" for name, feature in contract.observations.items() if feature.is_image}
        if not self._images:
            raise ContractError(
                "images", got=f"a world with {', '.join(contract.observations)}", expected="at least one camera"
            )

    def reset(self) -> None:
        self._then.reset()

    def adapt_observation(self, data: Mapping[str, Array], prompt: str) -> Any:
        prepared = {
            name: self._prepared(array, self._images[name]) if name in self._images else array
            for name, array in data.items()
        }
        return self._then.adapt_observation(prepared, prompt)

    def adapt_chunk(self, chunk: Array, data: Mapping[str, Array]) -> Array:
        return self._then.adapt_chunk(chunk, data)

    def adapt_action(self, action: Array, data: Mapping[str, Array]) -> Array:
        return self._then.adapt_action(action, data)

    def _prepared(self, image: Array, kind: str) -> Array:
        height, width = self._height or image.shape[0], self._width or image.shape[1]
        if kind not in ("rgb", "bgr"):
            # Between a near and a far surface there is none in the middle.
            return fit(image, width, height, self._how, cv2.INTER_NEAREST if kind == "depth" else None)
        sized = fit(image, width, height, self._how)
        if kind != self._order:
            sized = sized[..., ::-1]
        if self._range != "uint8":
            full = float(np.iinfo(image.dtype).max) if image.dtype.kind == "u" else 1.0
            values = sized.astype(np.float32) / np.float32(full)
            if self._range == "signed":
                values = values * 2 - 1
            sized = (values - self._mean) / self._std
        return np.ascontiguousarray(np.moveaxis(sized, -1, 0) if self._layout == "chw" else sized)
