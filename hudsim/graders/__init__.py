"""Grading: verdicts, results, the plain graders that need nothing but the answer, and those that drive sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudsim.graders.combine import combine, combine_all, combine_any
from hudsim.graders.grader import Grader
from hudsim.graders.results import EvaluationResult, SubScore
from hudsim.graders.text import (
    contains,
    contains_all,
    contains_any,
    exact_match,
    f1_score,
    normalize,
    numeric_match,
)
from hudsim.graders.verdict import Verdict

if TYPE_CHECKING:
    from hudsim.graders.bash import BashGrader
    from hudsim.graders.pytest_grader import PytestGrader

__all__ = [
    "BashGrader",
    "EvaluationResult",
    "Grader",
    "PytestGrader",
    "SubScore",
    "Verdict",
    "combine",
    "combine_all",
    "combine_any",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "normalize",
    "numeric_match",
]

_LAZY = {"BashGrader": "hudsim.graders.bash", "PytestGrader": "hudsim.graders.pytest_grader"}


def __getattr__(name: str) -> Any:
    """Those that drive sandboxes are imported when they are asked for: grading by text needs none."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
