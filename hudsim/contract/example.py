"""Values that satisfy a feature, drawn at random."""

from __future__ import annotations

import numpy as np

from hudsim.contract.arrays import Array
from hudsim.contract.bounds import bounds
from hudsim.contract.feature import Feature
from hudsim.errors import ContractError

__all__ = ["example"]


def example(name: str, feature: Feature, rng: np.random.Generator) -> Array:
    """An array [*shape] of the feature's dtype within its limits: uniform integers, normal floats, depth ≥ 0.

    Raises :class:`~hudsim.errors.ContractError` if shape or dtype is not known yet.
    """
    if feature.shape is None or feature.dtype is None:
        raise ContractError(name, got="no shape or dtype", expected="a contract that is filled")
    dtype = np.dtype(feature.dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, feature.shape).astype(bool)
    limits = feature.limits
    low, high = bounds(limits.min if limits else None, limits.max if limits else None, feature.shape, dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(low, high, dtype=dtype.type, endpoint=True))
    normal = np.asarray(rng.standard_normal(feature.shape))
    if feature.is_image:
        normal = np.abs(normal)
    return np.asarray(np.clip(normal.astype(dtype), low, high))
