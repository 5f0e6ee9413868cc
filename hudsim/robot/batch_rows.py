"""Rows of batches: which batches may share a call, and one batch of several."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hudsim.errors import UsageError

__all__ = ["kind_of", "stacked"]

_PLAIN = (bool, int, float, str, bytes, type(None))


def kind_of(batch: Any) -> tuple[int, Hashable]:
    """The rows N of ``batch``, and what another one must equal to share its call.

    Arrays [N, …] and lists of N hold a row an observation: the arrays' dtypes and the rest of their shapes must be
    equal. Plain values (a text, a number: ``delay``) are for all rows, and must be equal themselves. So must the
    names. A mapping may hold mappings.

    Raises :class:`~hudsim.errors.UsageError` for what is none of these, and if the numbers of rows differ.
    """
    if not isinstance(batch, Mapping):
        raise UsageError(f"a batch of {type(batch).__name__}: only mappings {{feature: [N, …]}} can share a call")
    counts: dict[str, int] = {}
    kind = _kind(batch, "", counts)
    if len(set(counts.values())) != 1 or 0 in counts.values():
        told = ", ".join(f"{name}: {count}" for name, count in counts.items()) or "none"
        raise UsageError(f"rows of a batch: got {told}; expected a number from 1, the same for all features")
    return next(iter(counts.values())), kind


def _kind(value: Any, name: str, counts: dict[str, int]) -> Hashable:
    if isinstance(value, Mapping):
        return frozenset((key, _kind(inner, f"{name}/{key}".lstrip("/"), counts)) for key, inner in value.items())
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return (value.dtype, value.tobytes())
    if isinstance(value, np.ndarray):
        counts[name] = len(value)
        return (value.dtype, value.shape[1:])
    if isinstance(value, list | tuple):
        counts[name] = len(value)
        return list
    if isinstance(value, _PLAIN):
        return (type(value), value)
    raise UsageError(
        f"{name}: got a {type(value).__name__}; expected an array [N, …], a list of N or a plain value, "
        "so that several agents' can share a call"
    )


def stacked(batches: Sequence[Any]) -> Any:
    """One batch with the rows of ``batches``, which are of one kind, in order. A single one is passed on as it is."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, Mapping):
        return {name: stacked([batch[name] for batch in batches]) for name in first}
    if isinstance(first, np.ndarray) and first.ndim:
        return np.concatenate(batches)
    if isinstance(first, list | tuple):
        return [row for batch in batches for row in batch]
    return first
