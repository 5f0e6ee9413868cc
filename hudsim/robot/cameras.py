"""``Cameras``: the images of a contract that cross a link encoded, seen from both ends of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.contract import Contract
from hudsim.contract.encoding import RAW, jpeg_quality
from hudsim.errors import DecodeError
from hudsim.robot.bridge import Array
from hudsim.wire.format import DEFAULT
from hudsim.wire.jpeg import decode_jpeg, encode_jpeg
from hudsim.wire.session import Peer

__all__ = ["ENCODINGS", "Cameras", "undecoded"]

ENCODINGS = ("jpeg",)
"""What an agent's end can decode."""


class Cameras:
    """The cameras whose ``encoding`` is not raw. In a frame ``{"jpeg": bytes}`` stands for such an image."""

    def __init__(self, contract: Contract) -> None:
        features = contract.observations.items()
        self._encoded = {name: feature for name, feature in features if feature.encoding != RAW and feature.complete}

    def crossing(self, peer: Peer) -> dict[str, str]:
        """{camera: encoding} of what is encoded for ``peer``: nothing if it shares memory or cannot decode it."""
        if peer.ring is not None or "jpeg" not in peer.encodings:
            return {}
        return {name: feature.encoding for name, feature in self._encoded.items()}

    def images(self, data: Mapping[str, Array]) -> dict[str, Array]:
        """Those of an observation's arrays that are encoded."""
        return {name: data[name] for name in self._encoded}

    def encode(self, data: Mapping[str, Array]) -> dict[str, Any]:
        """An observation's arrays with those images encoded. Raises :class:`~hudsim.errors.WireError`."""
        out: dict[str, Any] = dict(data)
        for name, feature in self._encoded.items():
            quality = jpeg_quality(feature.encoding)
            assert quality is not None
            out[name] = {"jpeg": encode_jpeg(data[name], str(feature.type), quality)}
        return out

    def decode(self, data: Mapping[str, Any]) -> dict[str, Array]:
        """The reverse, of what a peer sent. The images are read-only and own their memory.

        Raises :class:`~hudsim.errors.DecodeError` for what is not an image as the contract says it; together they may
        take what a frame may.
        """
        out = dict(data)
        room = DEFAULT.max_bytes
        for name in undecoded(data):
            feature, item = self._encoded.get(name), data[name]
            if feature is None or item.keys() != {"jpeg"}:
                got, raw = f"a map of {sorted(item)[:4]}", "an array"
                raise DecodeError(f"{name}: got {got}, expected {raw if feature is None else '{jpeg: bytes}'}")
            room -= feature.nbytes
            if room < 0:
                raise DecodeError(f"{name}: got images of over {DEFAULT.max_bytes} bytes, expected at most that")
            try:
                out[name] = decode_jpeg(item["jpeg"], str(feature.type), feature.shape or ())
            except DecodeError as error:
                raise DecodeError(f"{name}: {error.message}") from None
        return out


def undecoded(data: Mapping[str, Any]) -> list[str]:
    """The features of an observation from the wire that are no arrays yet."""
    return [name for name, item in data.items() if type(item) is dict]
