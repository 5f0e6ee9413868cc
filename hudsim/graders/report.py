"""``Report``: what one phase of one test came to, and reading it from a line that a sandbox sent."""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Account", "Report", "Stray"]

_PHASES = ("setup", "call", "teardown")
_OUTCOMES = ("passed", "failed", "skipped")
_MOST_TESTS = 20_000
_LONGEST = 4000


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
        What it collected; None: it has not come so far.
    errors
        Of collection: (id, message).
    reasons
        By id: why a test cannot work with the solution in another process.
    status
        Pytest's exit code, when it came to its end. None: it has not.
    """

    token: str
    ready: bool = False
    ids: list[str] | None = None
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
        if self.ended or len(self.reports) > 3 * _MOST_TESTS:
            raise Stray("a line after the end")
        event = message.get("event")
        if event == "ready" and not self.ready:
            self.ready = True
        elif event == "collected" and self.ready and self.ids is None:
            self.ids = [_text(one) for one in _list(message.get("ids"))]
            self.errors = [_pair(one) for one in _list(message.get("errors"))]
        elif event == "report" and self.ids is not None:
            self.reports.append(_report(message))
        elif event == "end" and type(message.get("status")) is int:
            reasons = message.get("reasons")
            if not isinstance(reasons, dict):
                raise Stray("reasons that are none")
            self.reasons = {_text(id): _text(why) for id, why in reasons.items()}  # noqa: A001
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


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST_TESTS:
        raise Stray("a list that is none, or too long")
    return value


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise Stray("a pair that is none")
    return _text(value[0]), _text(value[1])


def _text(value: Any) -> str:
    """As it is, but for halves of characters, which JSON can hold and nothing else can."""
    if not isinstance(value, str):
        raise Stray("a text that is none")
    return value[:_LONGEST].encode(errors="backslashreplace").decode()
