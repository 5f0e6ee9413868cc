"""``OpaqueValue``, ``CannotCross`` and their like: what a test is told when the solution's side cannot answer it."""

from __future__ import annotations

__all__ = ["REASONS", "CannotCross", "CrossingError", "OpaqueValue", "SolutionGone", "SolutionRaised", "explain"]

REASONS = {
    "async": "a coroutine runs on one event loop, and that is on the other side",
    "class": "only the classes of the solution itself can be made over there",
    "copy": "an object of the other side has no state here that could be copied or pickled",
    "cycle": "a tuple or frozenset that contains itself cannot be rebuilt",
    "deep": "data nested this deep is not carried",
    "exit": "SystemExit, KeyboardInterrupt and a test's outcome are never taken from the solution",
    "large": "a message of this size is not carried",
    "many": "too many lists, dicts and sets are held on both sides",
    "module": "no module of the tests or of the interpreter is lent to the solution",
    "object": "an object of the interpreter or the test runner is not lent to the solution",
    "opaque": "the solution's own verdict is no evidence; the author can opt this class in",
    "private": "the solution may not reach into the private parts of a test's object",
    "subclass": "a class of the tests can inherit only from those of the solution whose objects live over there",
    "thread": "only the thread that runs the tests can call the solution",
}
"""What cannot work across, by the word that :class:`CannotCross` carries."""


class CrossingError(Exception):
    """Base of what a test is told. ``reason`` is a key of :data:`REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class CannotCross(CrossingError):
    """This way of using the solution does not work from another process; the file belongs to ``process="same"``."""


class OpaqueValue(CrossingError):
    """The test asked an object of the solution for a verdict (``==``, truth, order, ``in``) that nobody can check."""

    def __init__(self, message: str) -> None:
        super().__init__("opaque", message)


class SolutionRaised(Exception):
    """The solution raised what is no ``Exception``: it exits, interrupts, or claims an outcome of a test."""


class SolutionGone(BaseException):
    """The solution did not answer in time, has died, or sent what is no message. No ``except Exception`` hides it.

    ``kind`` is ``hung``, ``died`` or ``garbled``.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def explain(error: BaseException) -> str | None:
    """Why a test could not have worked across, in words. None: the boundary has no part in this error."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, CrossingError):
            return f"{at.reason}: {at}; {REASONS[at.reason]}"
        if isinstance(at, SolutionRaised):
            return f"exit: {at}; {REASONS['exit']}"
        at = at.__cause__ or at.__context__
    return None
