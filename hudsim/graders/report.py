"""``Report``: what one phase of one test came to, and reading it from a line that a sandbox sent."""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hudsim.graders.running.runner import LONGEST, MOST_TESTS

__all__ = ["Account", "Report", "Stray"]

_PHASES = ("setup", "call", "teardown")
_OUTCOMES = ("passed", "failed", "skipped")
Some = TypeVar("Some", list[Any], dict[str, Any])


class Stray(Exception):
    """A line that the runner did not send."""


@dataclass(frozen=True, slots=True)
class Report:
    """As pytest makes three of each test: ``when`` is setup, call or teardown; ``seconds`` is how long it took."""

    id: str
    when: str
    outcome: str
    xfail: bool
    seconds: float
    message: str

    @property
    def stem(self) -> str:
        """Its id without parameters."""
        return self.id.partition("[")[0]


@dataclass
class Account:
    """All that one runner has said.

    ready
        It has come so far that the solution may run.
    ids
        What it collected, so far.
    collected
        That was all.
    errors
        Of collection: (id, message).
    reasons
        By id: why a test cannot work with the solution in another process.
    status
        Pytest's exit code, when it came to its end. None: it has not.
    """

    token: str
    ready: bool = False
    ids: list[str] = field(default_factory=list)
    collected: bool = False
    errors: list[tuple[str, str]] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    status: int | None = None

    @property
    def ended(self) -> bool:
        """It came to its end."""
        return self.status is not None

    def add(self, line: bytes) -> None:
        """One line. Raises :class:`Stray` for one that is not the runner's, or not its turn."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise Stray("a line that is no JSON") from None
        token = message.get("token") if isinstance(message, dict) else None
        if not isinstance(token, str) or not hmac.compare_digest(_text(token).encode(), self.token.encode()):
            raise Stray("a line without the runner's token")
        if self.ended:
            raise Stray("a line after the end")
        event = message.get("event")
        if event == "ready" and not self.ready:
            self.ready = True
        elif event == "test" and self.ready and not self.collected:
            _more(self.ids, MOST_TESTS).append(_text(message.get("id")))
        elif event == "broken" and self.ready and not self.collected:
            _more(self.errors, MOST_TESTS).append((_text(message.get("id")), _text(message.get("message"))))
        elif event == "collected" and self.ready and not self.collected:
            self.collected = True
        elif event == "report" and self.collected:
            _more(self.reports, 3 * MOST_TESTS).append(_report(message))
        elif event == "reason" and self.ready:
            _more(self.reasons, 2 * MOST_TESTS)[_text(message.get("id"))] = _text(message.get("why"))
        elif event == "end" and type(message.get("status")) is int:
            self.status = message["status"]
        else:
            what = repr(event) if isinstance(event, str) else type(event).__name__
            raise Stray(f"a line of the event {what:.40} out of its turn")


def _report(message: dict[str, Any]) -> Report:
    seconds = message.get("seconds")
    if message.get("when") not in _PHASES or message.get("outcome") not in _OUTCOMES:
        raise Stray("a report of no phase or no outcome")
    if type(message.get("xfail")) is not bool or type(seconds) is not float or not math.isfinite(seconds):
        raise Stray("a report with a wrong field")
    id, why = _text(message.get("id")), _text(message.get("message"))  # noqa: A001 - pytest's word
    return Report(id, message["when"], message["outcome"], message["xfail"], seconds, why)


def _more(those: Some, most: int) -> Some:
    """``those``, if one more may be added."""
    if len(those) >= most:
        raise Stray("more lines than there can be")
    return those


def _text(value: Any) -> str:
    """As it is, but for halves of characters, which JSON can hold and nothing else can."""
    if not isinstance(value, str):
        raise Stray("a text that is none")
    return value[:LONGEST].encode(errors="backslashreplace").decode()
