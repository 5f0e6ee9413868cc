"""``PassAt``: how often at least one of k tries passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudsim.errors import UsageError
from hudsim.eval.run import Run
from hudsim.graders import Verdict

__all__ = ["PassAt", "pass_at"]


@dataclass(frozen=True, slots=True)
class PassAt:
    """pass@k over tasks; ``float(it)`` is ``value``.

    k
        Tries.
    value
        Mean over ``tasks``, from 0 to 1.
    tasks
        Of each task, by slug.
    left_out
        Tasks with fewer than ``k`` runs that count, and how many they have.
    """

    k: int
    value: float
    tasks: dict[str, float]
    left_out: dict[str, int]

    def __float__(self) -> float:
        return self.value


def pass_at(results: Mapping[str, Sequence[Run]], k: int) -> PassAt:
    """The chance that of ``k`` runs of a task, drawn from those there are, at least one passed.

    The unbiased estimate of Chen et al., *Evaluating Large Language Models Trained on Code*, 2021, equation 1:
    1 − C(n − c, k) / C(n, k), where n runs of a task have a verdict that counts and c of these are ``passed``.

    Raises :class:`~hudsim.errors.UsageError` for a ``k`` below 1, and if no task has ``k`` runs that count.
    """
    if type(k) is not int or k < 1:
        raise UsageError(f"pass@k: got k {k!r}, expected a whole number of tries, at least 1")
    tasks: dict[str, float] = {}
    left_out: dict[str, int] = {}
    for slug, runs in results.items():
        verdicts = [run.verdict for run in runs if run.valid]
        if len(verdicts) < k:
            left_out[slug] = len(verdicts)
        else:
            tasks[slug] = _estimate(len(verdicts), verdicts.count(Verdict.passed), k)
    if not tasks:
        there_are = ", ".join(f"{slug} {count}" for slug, count in left_out.items()) or "no task"
        raise UsageError(f"pass@{k} needs {k} runs that count of a task; there are: {there_are}")
    return PassAt(k, math.fsum(tasks.values()) / len(tasks), tasks, left_out)


def _estimate(n: int, c: int, k: int) -> float:
    """As a product of n − c < i ≤ n, since the binomials would overflow."""
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))
