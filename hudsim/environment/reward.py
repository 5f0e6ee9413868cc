"""From what a template yields second to an ``EvaluationResult``; the core of grading, without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudsim.errors import HudsimError, SandboxBroken, TemplateError, UsageError, WireError
from hudsim.graders import EvaluationResult, SubScore, Verdict
from hudsim.graders.number import finite
from hudsim.robot.ending import CANCELLED

__all__ = ["evaluation_of", "forfeited", "lost"]

_EXPECTED = (
    "expected a finite number, an EvaluationResult, a SubScore, the record of a bridge's result(), or {'score': number}"
)


def evaluation_of(given: Any, template: str) -> EvaluationResult:
    """The evaluation that ``given``, the second yield of ``template``, stands for.

    Raises :class:`~hudsim.errors.TemplateError` for what is none: a bool, NaN, None, text.
    """
    if isinstance(given, EvaluationResult):
        return given
    if isinstance(given, SubScore):
        return EvaluationResult(reward=given.value, subscores=[given.model_copy(update={"weight": 1.0})])
    if isinstance(given, Mapping):
        return _of_mapping(given, template)
    return EvaluationResult(reward=_number(given, template))


def forfeited(evaluation: EvaluationResult, end: str) -> EvaluationResult:
    """The evaluation of a task whose episode the policy broke off: no more than 0, whatever the template makes of it.

    Or a policy that gives NaN at once would do better than one that plays on in a world of negative rewards.
    """
    if evaluation.isError or evaluation.reward <= 0:
        return evaluation
    info = {**evaluation.info, "forfeited": evaluation.reward}
    words = f"{end}: an episode that the policy broke off is worth no more than 0"
    return evaluation.model_copy(update={"reward": 0.0, "verdict": None, "content": words, "info": info})


def lost(error: HudsimError, limits: Sequence[str]) -> EvaluationResult:
    """The evaluation of a task that cannot be graded because of how the agent left its workspace: 0.

    ``error`` is a :class:`~hudsim.errors.WorkspaceError`, or a :class:`~hudsim.errors.SandboxBroken`; the latter is
    raised again unless its sandbox or a workspace is known to have run into a limit: its ``evidence``, or ``limits``.
    """
    if not isinstance(error, SandboxBroken):
        return EvaluationResult(content=_said(error))
    why = list(dict.fromkeys([*error.data.get("evidence", ()), *limits]))
    if not why:
        raise error
    return EvaluationResult(verdict=Verdict.resource_limit, content=_said(error), info={"why": why})


def _said(error: HudsimError) -> str:
    return "; ".join([error.message, *getattr(error, "__notes__", ())])  # notes: which grader it was


def _of_mapping(given: Mapping[str, Any], template: str) -> EvaluationResult:
    is_record = "end" in given and "cadence" in given
    try:
        if is_record and given["end"] == str(CANCELLED):  # the agent's doing: a template asks once that is done
            return EvaluationResult(content="the agent left the episode before its end", info=_info(given))
        if is_record and given.get("is_error"):  # an episode that is nobody's verdict
            words = f"{given['end']}: {given.get('message') or 'the episode was lost'}"
            return EvaluationResult(isError=True, verdict=Verdict.infra_error, content=words, info=_info(given))
        if "score" not in given:
            raise TemplateError(f"template {template} graded with a dict of {sorted(map(str, given))}; {_EXPECTED}")
        if is_record:
            score = given["score"] if given["score"] is not None else given["total_reward"]  # of a world without a goal
            return EvaluationResult(reward=_number(score, template), info=_info(given))
        return EvaluationResult.from_frame(given)
    except (UsageError, WireError) as error:
        raise TemplateError(f"template {template} graded with {error.message}; {_EXPECTED}") from None


def _info(record: Mapping[str, Any]) -> dict[str, Any]:
    """A bridge's record without what the result says by itself."""
    return {key: value for key, value in record.items() if key != "score"}


def _number(given: Any, template: str) -> float:
    try:
        return finite(given)
    except UsageError as error:
        told = f"template {template} graded with a {type(given).__name__}: {error.message}"
        raise TemplateError(f"{told}; {_EXPECTED}") from None
