"""What a contract leaves out, read off the first observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hudsim.contract.arrays import as_array
from hudsim.contract.feature import Feature

__all__ = ["filled_features", "image_type"]

_SMALLEST_IMAGE = 16


def image_type(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    """``rgb`` or ``gray`` for uint8 [H, W, 3] or [H, W, 1] with both sides at least 16, else None.

    Smaller grids of uint8 triples are not pictures (a grid world's cells: object, colour, state). Two
    axes alone, or floats, may be anything; they are carried as they are.
    """
    if dtype != np.uint8 or len(shape) != 3 or min(shape[:2]) < _SMALLEST_IMAGE:
        return None
    return {3: "rgb", 1: "gray"}.get(shape[2])


def filled_features(features: Mapping[str, Feature], data: Mapping[str, Any]) -> dict[str, Any]:
    """``features`` with shape, dtype and image type from ``data`` {feature: [*shape]} where they say none.

    A contract without any observation takes over all of ``data``. What is filled is still to be validated: it is
    given as the keywords of a ``Feature``.
    """
    if not any(feature.role == "observation" for feature in features.values()):
        features = {**{name: Feature(role="observation") for name in data}, **features}
    return {
        name: _filled(name, feature, data[name]) if name in data and feature.role == "observation" else feature
        for name, feature in features.items()
    }


def _filled(name: str, feature: Feature, value: Any) -> dict[str, Any]:
    array = as_array(name, value)
    known = {key: getattr(feature, key) for key in Feature.model_fields}
    shape = array.shape
    if feature.shape is None and shape == () and feature.names is not None:
        shape = (1,)
    known["shape"] = shape if feature.shape is None else feature.shape
    known["dtype"] = array.dtype.name if feature.dtype is None else feature.dtype
    if feature.type is None:
        known["type"] = image_type(known["shape"], np.dtype(known["dtype"]))
    return known
