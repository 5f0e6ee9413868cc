"""``Finding``: what a check found, in a user's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Severity"]

Severity = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` was looked at, what it ``got`` and what was ``expected`` (empty where ``got`` says all).

    severity
        ``ok``: as it should be. ``warning``: it runs, but something will surprise. ``error``: it is wrong.
    """

    what: str
    got: str
    expected: str = ""
    severity: Severity = "error"

    @property
    def ok(self) -> bool:
        """Nothing to do about it."""
        return self.severity == "ok"

    def __str__(self) -> str:
        return f"{self.what}: got {self.got}, expected {self.expected}" if self.expected else f"{self.what}: {self.got}"
