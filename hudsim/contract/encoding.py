"""How an image crosses a link that is not local: ``raw``, or ``jpeg`` of a quality."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudsim.contract.refusal import refuse
from hudsim.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from hudsim.contract.feature import Feature

__all__ = ["ENCODABLE", "PATTERN", "RAW", "encodable", "jpeg_quality", "settled"]

RAW = "raw"
ENCODABLE = ("rgb", "bgr", "gray")
"""The types of image that may be encoded. What depth means does not survive it."""

PATTERN = r"^(raw|jpeg(:(100|[1-9][0-9]?))?)$"
_QUALITY = 90
"""Of a ``jpeg`` that says none: a quarter more bytes than 75, and edges keep their colours."""


def settled(value: Any) -> str:
    """``raw`` or ``jpeg:QUALITY``, of a word that may leave the quality out."""
    if not isinstance(value, str) or re.fullmatch(PATTERN, value) is None:
        raise refuse(f"{value!r:.40}", "'raw', 'jpeg', or 'jpeg:QUALITY' with a quality from 1 to 100")
    return f"jpeg:{_QUALITY}" if value == "jpeg" else value


def jpeg_quality(encoding: str) -> int | None:
    """The quality, 1 (worst) to 100, of a :func:`settled` encoding; None for ``raw``."""
    return None if encoding == RAW else int(encoding.partition(":")[2])


def encodable(observations: Mapping[str, Feature], camera: str) -> list[str]:
    """The features that ``camera`` means: one by its name or the last part of it, or by ``*`` all there are.

    Raises :class:`~hudsim.errors.UnknownName` if there is none, :class:`~hudsim.errors.UsageError` if it means several.
    """
    there_are = [name for name, f in observations.items() if f.type in ENCODABLE and f.dtype == "uint8"]
    if camera in there_are:
        return [camera]
    found = there_are if camera == "*" else [name for name in there_are if name.rpartition("/")[2] == camera]
    if not found:
        raise UnknownName("camera to encode", camera, there_are)
    if len(found) > 1 and camera != "*":
        raise UsageError(f"camera {camera!r}: got a name that {', '.join(found)} end in, expected the whole of one")
    return found
