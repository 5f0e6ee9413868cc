"""What an object of the solution answers by itself, and where its word is no evidence.

=====================  ==============================================================================================
in a test              what happens
=====================  ==============================================================================================
attributes, methods    by call: the solution's side is asked, the test compares what comes back
``h[k]``, ``h(…)``     by call; so are setting, deleting, ``with h``, and every operator of arithmetic and of bits
``h - x``, ``h ^ x``   by call; :class:`OpaqueValue` if x is plain data, unless opted in: how far it is from what a
                       test expects is a verdict, whatever says it
``h / x``, ``h & x``   likewise, if x is plain data and so is the answer, or it has a number or elements; so are
                       ``//``, ``%``, ``divmod`` and ``|``
``iter``, ``next``     by call, one element at a time
leaving ``with h``     by call; :class:`OpaqueValue` if it swallows an error, unless opted in; a failed assertion is
                       never swallowed
``len``, ``int`` …     by call: what comes back is a plain number; ``str``, ``repr``, ``format``, ``bytes`` likewise
``==``, ``!=``         identity where the class has no ``__eq__``; the fields, compared by the test's side, if it is a
                       dataclass's generated one; what the class of a named tuple, enum or collections.abc says of
                       plain data; else :class:`OpaqueValue` unless its class is opted in
``<`` ``<=`` …, truth  a dataclass's generated order by its fields; true where the class has no ``__bool__`` and no
                       ``__len__``; else :class:`OpaqueValue` unless opted in
``x in h``             by the elements, compared by the test's side, where there is no ``__contains__``, and of sets
                       and mappings; else as above
sets, mappings         what inherits from a set is compared and joined with plain data by its elements, whatever its
                       operators and their names in words (``difference``, ``issubset``) would say; a mapping that
                       compares as collections.abc does is compared by its elements
numbers                none inherits from ``numbers``; what one is taken apart into are ints
``hash(h)``            as ``==``
=====================  ==============================================================================================

To opt a class in is to trust its verdicts: whoever wrote the solution wrote them.
"""

from __future__ import annotations

import keyword
from typing import Any

__all__ = [
    "BY_CALL", "COMPARISONS", "DIFFERENCES", "GETTABLE", "OF_DESCRIPTORS", "OF_SETS", "OWN", "RATIOS", "VERDICTS",
    "sound",
]  # fmt: skip

_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"


def _operators(words: str, prefixes: tuple[str, ...]) -> frozenset[str]:
    return frozenset(f"__{prefix}{word}__" for word in words.split() for prefix in prefixes)


DIFFERENCES = _operators("sub xor", ("", "r", "i"))
"""Those that say how far it is from what a test expects: nothing of it is left in the answer."""

RATIOS = _operators("truediv floordiv mod divmod and or", ("", "r", "i"))
"""Those that say how much of it is what a test expects: a number or a set is no answer then."""

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")

VERDICTS = frozenset({*COMPARISONS, "__bool__", "__contains__", "__hash__"})
"""Those whose answer is itself the verdict."""

OF_SETS = frozenset({*COMPARISONS, "__contains__", *_operators("sub xor and or", ("", "r"))})
"""Those that are answered here of the elements of a set."""

OF_DESCRIPTORS = frozenset({"__get__", "__set__", "__delete__", "__set_name__"})

BY_CALL = frozenset(
    {f"__{prefix}{word}__" for word in _ARITHMETIC.split() for prefix in ("", "r", "i")} - {"__idivmod__"}
    | {
        f"__{word}__"
        for word in [
            "neg",
            "pos",
            "abs",
            "invert",
            "int",
            "float",
            "complex",
            "index",
            "round",
            "trunc",
            "floor",
            "ceil",
            "call",
            "getitem",
            "setitem",
            "delitem",
            "missing",
            "iter",
            "next",
            "reversed",
            "len",
            "length_hint",
            "enter",
            "exit",
            "bytes",
            "fspath",
            "format",
            "repr",
            "str",
            "get",
            "set",
            "delete",
            "set_name",
        ]
    }
)
"""Those whose answer is a value that the test compares."""

GETTABLE = frozenset(
    f"__{word}__"
    for word in [
        "all",
        "annotations",
        "author",
        "dict",
        "doc",
        "file",
        "match_args",
        "module",
        "name",
        "qualname",
        "self",
        "slots",
        "version",
        "wrapped",
    ]
)
"""The attributes of this form that can be asked for."""


OWN = frozenset({"_asker", "_mirrored", "_ours", "_trusted"})
"""What a mirror has for itself."""


def sound(name: Any) -> bool:
    """Whether the mirror of a class may have an attribute of this name because the other side says so."""
    return (
        type(name) is str
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not (name.startswith("_") and name.endswith("_"))
        and name not in OWN
    )
