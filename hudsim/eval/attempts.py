"""What a run says of its earlier tries: those that were nobody's verdict, and those that were taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudsim.errors import StoreError, UsageError
from hudsim.graders import Verdict

__all__ = ["attempts_after", "taken_back"]

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
    earlier: list[dict[str, Any]] = before["attempts"]
    if earlier and "because" in earlier[-1] and earlier[-1]["started_at"] == before["started_at"]:
        return [*earlier, *attempts]  # it was taken back, and stands there as what it was
    return [*earlier, {key: before[key] for key in _KEPT}, *attempts]


def taken_back(row: Mapping[str, Any], because: str) -> dict[str, Any]:
    """The row of a run that counts, as one that does not: what it had come to is the last of its attempts.

    Raises :class:`~hudsim.errors.UsageError` if it does not count anyway.
    """
    if not Verdict(row["verdict"]).valid:
        raise UsageError(f"run {row['id']} does not count anyway: {row['verdict']}; a resume makes it again")
    was = {key: row[key] for key in (*_KEPT, "reward")} | {"because": because}
    told = {"verdict": Verdict.cancelled.value, "reward": None, "error": f"taken back: {because}"}
    return {**row, **told, "attempts": [*row["attempts"], was]}
