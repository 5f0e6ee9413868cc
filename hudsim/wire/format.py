"""What both ways of the codec share: the limits of a message, the dtypes carried, the bytes that mark arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ARRAY",
    "ARRAY_HEAD",
    "CARRIED",
    "DEFAULT",
    "DTYPES",
    "DTYPE_KEY",
    "MAX_DIMS",
    "SCALAR",
    "SCALAR_HEAD",
    "SHAPE_KEY",
    "Array",
    "Buffer",
    "Limits",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a message may be at most.

    ``max_bytes`` is its size, ``max_depth`` how many lists and maps may stand in one another, ``max_items`` how
    many elements its lists and maps may have together (a key counts as one).
    """

    max_bytes: int = 64 << 20
    max_depth: int = 16
    max_items: int = 100_000


DEFAULT = Limits()
MAX_DIMS = 32  # axes of an array: what numpy 1 can hold

Buffer: TypeAlias = bytes | bytearray | memoryview
Array: TypeAlias = NDArray[Any]

DTYPES = {
    f"{order}{kind}{size}": np.dtype(f"{order}{kind}{size}")
    for kind, sizes in {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}.items()
    for size in sizes
    for order in ("<>|" if size == 1 else "<>")
}
CARRIED = "bool, int, uint or float of at most 64 bits"

ARRAY, SCALAR = "__ndarray__", "__npgeneric__"
ARRAY_HEAD = b"\x84\xc4\x0b__ndarray__\xc3\xc4\x04data"
SCALAR_HEAD = b"\x83\xc4\x0d__npgeneric__\xc3\xc4\x04data"
DTYPE_KEY, SHAPE_KEY = b"\xc4\x05dtype", b"\xc4\x05shape"
