"""HUD's v0 contract documents, in this schema's words."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from hudsim.contract.feature import IMAGE_TYPES, Feature
from hudsim.contract.refusal import Model
from hudsim.errors import ContractError

__all__ = ["upgraded"]


_SLIP = 0.8
_V0_WORDS = ("units", "name")
"""Words that a v0 document uses although they look like slips of this schema's."""


class _Parts(Model):
    """Validates features where they stand, so that a complaint names the right one."""

    features: dict[str, Feature]


def upgraded(doc: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    """A document without ``schema``, as the arguments of a ``Contract``, whose own keys are ``keys``.

    Of v0's rules: ``units`` is a word for all dimensions, ``limits`` may be a pair, an image's ``names`` are
    its axes, several action features make up one vector in their ``order``, and text is not an array (the
    prompt carries it). What has no word here goes to ``extra``, as it is.
    """
    out, extra = _split("contract", doc, keys)
    if out.get("control_rate") is None and "fps" in extra:
        out["control_rate"] = extra["fps"]
    features = out.get("features", {})
    if not isinstance(features, Mapping):
        return out
    kept, text = {}, {}
    for name, feature in features.items():
        if not isinstance(feature, Mapping):
            kept[name] = feature
        elif feature.get("dtype") == "string":
            text[name] = dict(feature)
        else:
            kept[name] = _feature(str(name), feature)
    out["features"] = _one_action(kept)
    if text:
        extra["text_features"] = text
    if extra:
        out["extra"] = _with(out.get("extra", {}), extra)
    return out


def _split(name: str, doc: Mapping[str, Any], keys: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The part of ``doc`` that this schema knows, and the rest; a slip of the pen is in neither.

    A bridge's own dict says no ``schema`` as often as not, and ``limit`` for ``limits`` would go unnoticed.
    """
    known = {key: value for key, value in doc.items() if key in keys}
    rest = {key: value for key, value in doc.items() if key not in keys}
    for key in rest:
        near = difflib.get_close_matches(str(key), keys, n=1, cutoff=_SLIP)
        if near and key not in _V0_WORDS:
            hint = f"did you mean {near[0]!r}?"
            raise ContractError(name, got=f"a key {key!r}", expected="one that is known", hint=hint)
    return known, rest


def _feature(name: str, doc: Mapping[str, Any]) -> dict[str, Any]:
    out, extra = _split(name, doc, Feature.known_keys())
    out.setdefault("role", "action" if re.split(r"[./]", name)[0] == "action" else "observation")
    if "units" in extra and "unit" not in out:
        out["unit"] = extra.pop("units")
    if isinstance(out.get("limits"), list | tuple):
        out["limits"] = _limits(name, out["limits"])
    if out.get("type") in IMAGE_TYPES:
        layout = out.get("state_representation")
        if layout not in (None, "HWC"):
            got = f"an image laid out {layout}"
            raise ContractError(name, got=got, expected="HWC", hint="transpose it in the bridge")
        if "names" in out:
            extra["names"] = out.pop("names")
    if extra:
        out["extra"] = _with(out.get("extra", {}), extra)
    return out


def _limits(name: str, pairs: Sequence[Any]) -> dict[str, Any]:
    """``[min, max]`` for all, or one such pair for each dimension (two pairs could be meant either way)."""
    lists = [isinstance(item, list | tuple) for item in pairs]
    if not any(lists) and len(pairs) == 2:
        return {"min": pairs[0], "max": pairs[1]}
    if all(lists) and len(pairs) not in (0, 2) and all(len(pair) == 2 for pair in pairs):
        return {"min": [pair[0] for pair in pairs], "max": [pair[1] for pair in pairs]}
    got, hint = f"limits {reprlib.repr(pairs)}", 'say {"min": [...], "max": [...]}'
    raise ContractError(name, got=got, expected="[min, max], or a pair a dimension", hint=hint)


def _with(extra: Any, more: dict[str, Any]) -> Any:
    """``extra`` and ``more``; if it is no mapping, as it is, for the schema to refuse."""
    return {**extra, **more} if isinstance(extra, Mapping) else extra


def _one_action(features: dict[str, Any]) -> dict[str, Any]:
    """The features with those of role ``action``, if several, joined to one that is called ``action``."""
    parts = {name: doc for name, doc in features.items() if isinstance(doc, Mapping) and doc.get("role") == "action"}
    if len(parts) < 2:
        return features
    unchecked: dict[str, Any] = {"features": parts}
    built = _Parts(**unchecked).features
    for name, part in built.items():
        if part.shape is None or len(part.shape) != 1:
            raise ContractError(name, got=f"an action part of shape {list(part.shape or ())}", expected="a vector")
    ordered = sorted(built.items(), key=lambda item: _start(item[0], item[1]))
    position = 0
    for name, part in ordered:
        if _start(name, part) != position:
            got = f"order {part.extra.get('order')!r}"
            raise ContractError(name, got=got, expected=f"a part that starts at {position}")
        position += part.width or 0
    rest = {name: doc for name, doc in features.items() if name not in parts}
    return {**rest, "action": _joined(dict(ordered))}


def _start(name: str, part: Feature) -> int:
    found = re.match(r"\d+", str(part.extra.get("order", "")))
    if found is None:
        raise ContractError(name, got="several action features, this one without order", expected="its place, as '0-2'")
    return int(found[0])


def _joined(parts: dict[str, Feature]) -> dict[str, Any]:
    joined: dict[str, Any] = {"role": "action"}
    for key in ("dtype", "out_of_range"):
        values = sorted({str(getattr(part, key)) for part in parts.values()})
        if len(values) > 1:
            raise ContractError("action", got=f"parts of {', '.join(values)}", expected=f"one {key}")
        joined[key] = values[0]
    low: list[Any] = []
    high: list[Any] = []
    names: list[str] = []
    unit: list[str] = []
    hold: list[str] = []
    for name, part in parts.items():
        width = part.width or 0
        names += part.names or [f"{name}.{i}" if width > 1 else name for i in range(width)]
        unit += _spread(part.unit, width, "")
        hold += part.hold or []
        low += _spread(part.limits.min if part.limits else None, width, None)
        high += _spread(part.limits.max if part.limits else None, width, None)
    if any(unit):
        joined["unit"] = unit
    joined |= {"shape": (len(names),), "names": names, "hold": hold, "limits": {"min": low, "max": high}}
    said = {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in parts.items()}
    return {**joined, "extra": {"parts": said}}


def _spread(value: Any, width: int, absent: Any) -> list[Any]:
    """One for each of ``width`` entries."""
    if value is None:
        return [absent] * width
    values = value if isinstance(value, list) else [value]
    return values * width if len(values) == 1 else values
