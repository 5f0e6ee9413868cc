"""Grading: verdicts, results, and the plain graders that need nothing but the answer."""

from __future__ import annotations

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

__all__ = [
    "EvaluationResult",
    "Grader",
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
