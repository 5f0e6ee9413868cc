"""An exception as its parts, and made of them: a real one where its class is known, else one of its mirror."""

from __future__ import annotations

import contextlib
from typing import Any

from hudsim.graders.crossing.codec import GarbledError
from hudsim.graders.crossing.errors import SolutionRaised
from hudsim.graders.crossing.mirrors import MirrorType

__all__ = ["args_of", "make_error", "state_of"]


def args_of(error: BaseException) -> tuple[Any, ...]:
    """What its class makes it of."""
    if isinstance(error, OSError) and error.filename is not None and len(error.args) == 2:
        more = (error.filename,) if error.filename2 is None else (error.filename, None, error.filename2)
        return (*error.args, *more)
    return error.args


def state_of(error: BaseException) -> tuple[tuple[str, Any], ...]:
    """Its attributes besides: (name, value) …"""
    own = [item for item in vars(error).items() if item[0] != "__notes__"]
    if isinstance(error, (AttributeError, ImportError, NameError)) and type(error.name) is str:
        own.append(("name", error.name))
    return tuple(own)


def make_error(kind: Any, args: Any) -> BaseException:
    """Of this class, or :class:`SolutionRaised` if that is no ``Exception``. Raises :class:`GarbledError`."""
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise GarbledError("got an error of a class that is none")
    if not issubclass(kind, Exception) or type(args) is not tuple:
        return SolutionRaised(f"the solution raised {kind.__name__}{args!r}")
    if not isinstance(kind, MirrorType):
        with contextlib.suppress(Exception):  # its arguments may be no more what its class wants
            return kind(*args)
    error = kind.__new__(kind, *args)
    error.args = args
    return error
