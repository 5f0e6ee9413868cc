"""A function of the other side: a real one here, by its name and signature, that asks over there."""

from __future__ import annotations

import inspect
from typing import Any

from hudsim.graders.crossing.codec import GarbledError
from hudsim.graders.crossing.forwarders import Asker

__all__ = ["signature_of", "stand_in_function"]

_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


def stand_in_function(asker: Asker, said: Any) -> Any:
    """From what :func:`describe_function` says, and what it wraps. Raises :class:`GarbledError`."""
    if type(said) is not tuple or len(said) != 7:
        raise GarbledError("got a function without a description")
    name, qualname, module, doc, signature, is_async, wrapped = said

    def function(*args: Any, **options: Any) -> Any:
        if is_async:
            raise asker.refuse("async", f"got a call of {name}, which is asynchronous")
        return asker.ask("call", function, args, options)

    function.__name__ = name if type(name) is str else "function"
    function.__qualname__ = qualname if type(qualname) is str else function.__name__
    function.__module__, function.__doc__ = module, doc
    try:
        made = signature_of(signature)
    except (IndexError, TypeError, ValueError):
        raise GarbledError("got a signature that cannot be") from None
    if made is not None:
        function.__signature__ = made  # type: ignore[attr-defined]
    if wrapped is not None:
        function.__wrapped__ = wrapped  # type: ignore[attr-defined]
    return function


def signature_of(parts: Any) -> inspect.Signature | None:
    """From what :func:`describe_signature` says."""
    if parts is None:
        return None
    returns, *parameters = parts
    made = [
        inspect.Parameter(
            word,
            _KINDS[kind],
            default=default if has else inspect.Parameter.empty,
            annotation=_annotation(annotation),
        )
        for word, kind, has, default, annotation in parameters
    ]
    return inspect.Signature(made, return_annotation=_annotation(returns))


def _annotation(annotation: Any) -> Any:
    way, value = annotation
    return inspect.Parameter.empty if way == "none" else value
