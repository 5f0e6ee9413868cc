"""``Spread``: whether the rewards of a group differ: what a learner that compares them has to go by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hudsim.errors import UsageError
from hudsim.eval.run import Run
from hudsim.graders import Verdict

__all__ = ["NARROW_STD", "Spread", "SpreadState", "spread_of", "spread_words"]

SpreadState = Literal["spread", "narrow", "all_zero", "all_one", "flat", "errored", "partial"]

NARROW_STD = 0.02
"""Below this share of the rewards' scale (1, or the largest reward's size if that is more) a std is ``narrow``.

Methods like GRPO divide by the group's std: a hundredth of a reward, which an author rounds away, then counts like a
success against a failure. In a group of 8 it is reached when one run differs from the others by 0.06.
"""

_Whole = Literal["spread", "narrow", "all_zero", "all_one", "flat"]

_NO_VARIANCE = "no variance, so a learner that compares runs of one task (GRPO) has nothing to go by"
_WORDS: dict[_Whole, str] = {
    "spread": "rewards from {low:.3g} to {high:.3g}, mean {mean:.3g}, std {std:.2g}: it can train",
    "narrow": "rewards differ by a std of {std:.2g} only: divided by it, noise would train",
    "all_zero": f"every reward is 0: {_NO_VARIANCE}; make it easier, or give partial credit",
    "all_one": f"every reward is 1: {_NO_VARIANCE}; it is solved: make it harder",
    "flat": f"every reward is {{mean:.3g}}: {_NO_VARIANCE}",
}
_BY_REWARD = (Verdict.passed, Verdict.partial, Verdict.failed)  # the others' reward has other reasons than subscores

_SAME = 1e-9  # rewards that differ by less are equal
_SUMS = 1e-6  # ... and sums of subscores
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Spread:
    """A group's rewards.

    state
        ``spread`` they differ; ``narrow`` they do, but by less than :data:`NARROW_STD`; ``all_zero``, ``all_one``,
        ``flat`` they are all 0, all 1, all something else; ``errored`` no run counts; ``partial`` some do not count or
        are missing: ``words`` says what the rest is.
    rewards
        By index in the group. None: missing, or it does not count.
    mean, std
        Of those that count; ``std`` is the population's. None: none counts.
    trains
        Whether those that count are a ``spread``.
    words
        A line for the task's author: what it is, whether it can train anything, what took the variance away.
    """

    state: SpreadState
    rewards: tuple[float | None, ...]
    mean: float | None
    std: float | None
    trains: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "rewards": list(self.rewards),
            "mean": self.mean,
            "std": self.std,
            "trains": self.trains,
            "words": self.words,
        }


def spread_of(runs: Sequence[Run], group: int) -> Spread:
    """The spread of one task's ``runs``, of which there should be ``group``.

    A reward that is no finite number does not count. Raises :class:`~hudsim.errors.UsageError` for runs that are not
    of one group: two of one index, or an index that is not below ``group``.
    """
    rewards = _by_index(runs, group)
    there = [reward for reward in rewards if reward is not None]
    if not there:
        return Spread("errored", rewards, None, None, False, f"no run counts ({_absent(runs, group)}): run it again")
    mean = math.fsum(there) / len(there)
    std = math.sqrt(math.fsum((reward - mean) ** 2 for reward in there) / len(there))
    state = _state(there, std)
    words = _WORDS[state].format(low=min(there), high=max(there), mean=mean, std=std) + _hidden(runs)
    if group == 1:
        words = f"one run, reward {mean:.3g}: nothing to compare it with; a group of 4 or more shows if it can train"
    elif len(there) == 1:
        words = f"its reward {mean:.3g} has nothing to be compared with"
    if len(there) == group:
        return Spread(state, rewards, mean, std, state == "spread", words)
    words = f"{len(there)} of {group} count ({_absent(runs, group)}); of these: {words}"
    return Spread("partial", rewards, mean, std, state == "spread", words)


def spread_words(spreads: Mapping[str, Spread]) -> str:
    """A line on all groups of a job: ``6 of 8 groups can train; 1 all_zero (lift-hard-3), 1 errored (push-2)``."""
    if spreads and all(len(spread.rewards) == 1 for spread in spreads.values()):
        return "each task runs once: a group of 4 or more shows which can train"
    training = [name for name, spread in spreads.items() if spread.trains]
    partial = [name for name in training if spreads[name].state == "partial"]
    words = f"{len(training)} of {len(spreads)} groups can train"
    if partial:
        words += f", {len(partial)} of them partial ({_listed(partial)})"
    others: dict[str, list[str]] = {}
    for name, spread in spreads.items():
        if not spread.trains:
            others.setdefault(spread.state, []).append(name)
    told = [f"{len(names)} {state} ({_listed(names)})" for state, names in others.items()]
    return f"{words}; {', '.join(told)}" if told else words


def _by_index(runs: Sequence[Run], group: int) -> tuple[float | None, ...]:
    rewards: dict[int, float | None] = {}
    for run in runs:
        if run.index in rewards or not 0 <= run.index < group:
            raise UsageError(f"got run {run.id} of index {run.index}, expected one of each index below {group}")
        rewards[run.index] = run.reward if _counts(run) else None
    return tuple(rewards.get(index) for index in range(group))


def _counts(run: Run) -> bool:
    return run.reward is not None and math.isfinite(run.reward)


def _absent(runs: Sequence[Run], group: int) -> str:
    """Why runs do not count: ``2 infra_error, 1 missing``."""
    why = Counter("no finite reward" if run.valid else str(run.verdict) for run in runs if not _counts(run))
    if len(runs) < group:
        why["missing"] = group - len(runs)
    return ", ".join(f"{count} {reason}" for reason, count in why.items())


def _state(rewards: list[float], std: float) -> _Whole:
    low, high = min(rewards), max(rewards)
    if high - low > _SAME:
        return "narrow" if std < NARROW_STD * max(1.0, -low, high) else "spread"
    return "all_zero" if abs(low) <= _SAME else "all_one" if abs(low - 1) <= _SAME else "flat"


def _hidden(runs: Iterable[Run]) -> str:
    """What equal rewards hide: subscores that differ, or go beyond what the reward was held to."""
    sums: dict[float, list[float]] = {}
    for run in runs:
        if _counts(run) and run.verdict in _BY_REWARD and run.grade is not None and run.grade.subscores:
            total = math.fsum(subscore.weight * subscore.value for subscore in run.grade.subscores)
            sums.setdefault(run.grade.reward, []).append(total)
    words = ""
    for reward, totals in sorted(sums.items()):
        low, high = min(totals), max(totals)
        capped, raised = reward == 1 and high > 1 + _SUMS, reward == 0 and low < -_SUMS
        if len(totals) < 2 or not (capped or raised or high - low > _SUMS):
            continue
        made = "were held to 1" if capped else "were raised to 0" if raised else f"are {reward:.3g}"
        span = f"{low:.3g}" if high - low <= _SUMS else f"{low:.3g} to {high:.3g}"
        words += f"; {len(totals)} rewards {made}, but their subscores make {span}"
    return words


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
