"""``attempts_after``: what a run that is made again says of its earlier tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.errors import StoreError
from hudsim.graders import Verdict

__all__ = ["attempts_after"]

_KEPT = ("verdict", "error", "end", "seconds", "started_at")


def attempts_after(before: Mapping[str, Any] | None, attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``attempts`` of a run's row that takes the place of the row ``before`` (None: nothing stood there).

    Raises :class:`~hudsim.errors.StoreError` if that has a verdict that counts: it is never replaced.
    """
    if before is None:
        return attempts
    if Verdict(before["verdict"]).valid:
        raise StoreError(
            f"run {before['id']} has its verdict already: {before['verdict']}, reward {before['reward']}; "
            "a run that counts is never kept twice"
        )
    return [*before["attempts"], {key: before[key] for key in _KEPT}, *attempts]
