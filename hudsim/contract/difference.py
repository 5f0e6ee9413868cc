"""Two contracts, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudsim.contract.document import Contract

__all__ = ["difference"]


def difference(here: Contract, there: Contract) -> list[str]:
    """A line for each difference, ``observation/state: shape [8] here, [7] there``; empty if they are equal."""
    ours, theirs = here.to_json(), there.to_json()
    lines = []
    for key in sorted((ours.keys() | theirs.keys()) - {"features"}):
        lines += _between(key, ours.get(key), theirs.get(key))
    features, others = ours["features"], theirs["features"]
    lines += [f"{name}: here only" for name in features if name not in others]
    lines += [f"{name}: there only" for name in others if name not in features]
    for name in (name for name in features if name in others):
        for key in sorted(features[name].keys() | others[name].keys()):
            lines += _between(f"{name}: {key}", features[name].get(key), others[name].get(key))
    return lines


def _between(label: str, here: Any, there: Any) -> list[str]:
    if here == there:
        return []
    if isinstance(here, dict) and isinstance(there, dict):
        return [
            line
            for key in sorted(here.keys() | there.keys())
            for line in _between(f"{label}.{key}", here.get(key), there.get(key))
        ]
    if label.endswith(": names") and here and there and sorted(here) == sorted(there):
        return [f"{label} in another order: {here} here, {there} there"]
    return [f"{label} {_word(here)} here, {_word(there)} there"]


def _word(value: Any) -> str:
    return "not given" if value is None else str(value)
