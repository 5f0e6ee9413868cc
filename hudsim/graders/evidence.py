"""``evidence``: a verdict that a grader has evidence for, on its way up to the grade."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hudsim.graders.verdict import Verdict

if TYPE_CHECKING:
    from hudsim.graders.results import SubScore

__all__ = ["GRAVEST", "evident"]

GRAVEST = (Verdict.tampered, Verdict.resource_limit, Verdict.grade_timeout)
"""Those that ``info["verdict"]`` of a subscore may name, the gravest first."""


def evident(subscores: Iterable[SubScore]) -> Verdict | None:
    """The gravest verdict that one of ``subscores`` says in its ``info["verdict"]``; None: none says any."""
    said = {(subscore.info or {}).get("verdict") for subscore in subscores}
    return next((verdict for verdict in GRAVEST if verdict.value in said), None)
